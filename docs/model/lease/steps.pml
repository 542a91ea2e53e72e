/* The steps of a replica, as the functions of the same purpose in coordinator take them. */

/* send puts a write of r into the network, on the version that r knows. */
inline send(r, what, ep) {
	i = 1;
	do
	:: i <= IDS && kind[i] != FREE -> i++
	:: else -> break
	od;
	assert(i <= IDS);	/* IDS is large enough to hide nothing */
	kind[i] = what; owner[i] = me(r); epoch[i] = ep; cond[i] = ver[r]; net[i] = FLYING;
	op[r] = WRITE; opVal[r] = i; i = 0;
#ifdef MUT_SETTLE_AS_LATEST
	latest[r] = 0;
#endif
	tidy()
}

/* arrive: the store decides about a write. */
inline arrive(id) {
	k = owner[id] % N;
	if
	:: cond[id] == store ->
		if :: !waiting(id) -> witness(LATE_WRITE_LANDS) :: else fi;
		printf("store: takes write %d of replica %d, epoch %d\n", id, sender, epoch[id]);
		store = id; net[id] = LANDED; cond[id] = 0;
		if
		:: kind[id] == ACQUIRE ->
			assert(touched || epoch[id] > highest);				/* I2 */
			if :: epoch[id] > highest -> highest = epoch[id] :: else fi
		:: kind[id] == RELEASE ->
#if RESTORES > 0
			tomb[epoch[id]] = owner[id] + 1;
#endif
#ifdef MUT_DELETE_ON_RELEASE
			store = ABSENT;
#endif
			skip
		:: else
		fi
	:: else -> printf("store: refuses write %d of replica %d\n", id, sender); net[id] = REFUSED; cond[id] = 0
	fi;
	k = 0;
	tidy(); moved()
}

inline learn(r, id) {
	if
	:: epoch[id] > epMax[r] -> epMax[r] = epoch[id]
	:: else
	fi;
	if
	:: kind[id] != RELEASE && epoch[id] >= held[r] -> held[r] = epoch[id]; heldBy[r] = owner[id]
	:: else
	fi;
#ifdef MIXED
	if :: ttlOf(owner[id]) == TTL -> sawLong[r] = true :: else fi
#endif
}

/* see takes note of a definite state: the observer counts from after the receive. */
inline see(r, id) {
	if
	:: ver[r] != id ->
#if defined(MUT_ABSENCE_FROM_RECORD)
		if :: id != ABSENT || ver[r] == UNKNOWN -> age[r] = 0 :: else fi;
#elif defined(MUT_OBSERVER_FROM_SEND)
		age[r] = asked[r];
#else
		age[r] = 0;
#endif
#ifdef LIVE
		tried[r] = false;
#endif
		ver[r] = id; blind[r] = false;
#if defined(LIVE) && defined(TELLS)
		looked[r] = false
#endif
	:: else
#ifdef MUT_EVERY_READ_RESTARTS
		age[r] = 0
#endif
	fi;
	if :: id != ABSENT -> learn(r, id) :: else fi
}

/* clear ends all doubt of r. */
inline clear(r) {
	for (i : 1 .. IDS) {
		if :: kind[i] != FREE && owner[i] == me(r) -> doubt[i] = false :: else fi
	}
	i = 0; doubts[r] = 0; doubtAbsent[r] = false; quest[r] = false
}

/* counts: the term of r goes by this write from now on. */
inline counts(r, id) {
	ver[r] = id;
#if defined(MUT_COUNT_FROM_RECEIVE)
	age[r] = 0;
#elif defined(MUT_SETTLE_AS_LATEST)
	age[r] = latest[r];
#else
	age[r] = since[id];
#endif
	clear(r)
}

/* quit: the work is gone, the lease is given back. */
inline quit(r) {
	ph[r] = RELEASING;
#ifdef DOC
	sealed[r] = false;
#endif
	age[r] = TTL
}

inline won(r, id) {
	counts(r, id); learn(r, id);
	blind[r] = false; ph[r] = LEADING;
#ifdef LIVE
	tried[r] = false;
#endif
	if :: age[r] >= stopAt(r) -> quit(r) :: else fi
}

/* after forgets the term. id is our tombstone, or UNKNOWN. */
inline after(r, id) {
	clear(r);
#ifdef DOC
	sealed[r] = false;
#endif
	ph[r] = STANDBY; ver[r] = UNKNOWN; age[r] = 0; op[r] = IDLE; opVal[r] = 0;
	if :: id != UNKNOWN -> see(r, id) :: else fi
}

/* lose: somebody else may act already. */
inline lose(r) {
	assert(ph[r] == RELEASING || !ourTerm(r));					/* I7 */
	acting[r] = false;
	after(r, UNKNOWN)
}

/* confirmed: a write of the term landed. What was told to end is never prolonged. */
inline confirmed(r, id) {
	if
	:: ph[r] == LEADING && age[r] < life(r) -> counts(r, id)
	:: else -> j = age[r]; counts(r, id); age[r] = j; j = 0
	fi
}

/* unanswered: a write is given up, whatever becomes of it. */
inline unanswered(r) {
	for (i : 1 .. IDS) {
		if :: net[i] == FLYING && owner[i] == me(r) && i != opVal[r] -> j++ :: else fi
	}
	i = 0;
	if
	:: net[opVal[r]] == FLYING && j >= LATE		/* beyond the bound */
	:: else ->
		printf("replica %d: gives up a write\n", called(r));
#ifndef MUT_NO_ANSWER_IS_A_REFUSAL
		doubt[opVal[r]] = (net[opVal[r]] != REFUSED);
		if :: doubts[r] < 2 -> doubts[r]++ :: else fi;
#endif
		doubtAbsent[r] = (ph[r] == STANDBY && ver[r] == ABSENT);
		quest[r] = (ph[r] != STANDBY && doubts[r] > 1);
		op[r] = IDLE; opVal[r] = 0
	fi;
	j = 0
}

/* conflict on the version that r holds: rule 6. */
inline conflict(r, id) {
	if
#if defined(MUT_412_ALWAYS_LOST)
	:: false -> skip
#elif defined(MUT_412_ALWAYS_QUESTIONED)
	:: true -> quest[r] = true
#else
	:: doubts[r] > 0 -> quest[r] = true
#endif
	:: else -> witness(LOST_BY_CLEAN_CONFLICT); lose(r)
	fi
}

/* answered: r gets the answer of its write. */
inline answered(r) {
	k = opVal[r]; op[r] = IDLE; opVal[r] = 0;
	if
	:: net[k] == LANDED ->
		net[k] = SETTLED;
		if
		:: ph[r] == STANDBY -> won(r, k)
		:: ph[r] != STANDBY && kind[k] == RELEASE -> after(r, k)
		:: ph[r] != STANDBY && kind[k] != RELEASE -> confirmed(r, k)
		fi
	:: net[k] == REFUSED ->
		again(r);
		if
		:: ph[r] == STANDBY -> ver[r] = UNKNOWN; age[r] = 0; blind[r] = false
		:: else ->
			j = doubts[r];
			conflict(r, k);
			assert(j > 0 || !acting[r]);					/* rule 6 */
			j = 0
		fi
	fi;
	k = 0
}

/* brought: r gets the answer of its read. */
inline brought(r) {
	k = opVal[r]; op[r] = IDLE; opVal[r] = 0;
	if
	:: ph[r] == STANDBY ->
		/* The doubt belongs to a condition: the state last seen, or, after a conflict, the one before. */
		j = (doubts[r] > 0 && !(ver[r] == k || ver[r] == UNKNOWN && doubtAbsent[r] && k == ABSENT));
		see(r, k);
		if
		:: j && settles(r, k) -> witness(CLAIM_SETTLED_BY_READ); j = 0; won(r, k)
		:: j && !settles(r, k) -> j = 0; clear(r)
		:: else
		fi
	:: else ->
		if
		:: k == ver[r] -> quest[r] = false;					/* nothing is settled */
#ifdef MUT_OLD_VERSION_SETTLES
			clear(r)
#endif
		:: k != ver[r] && settles(r, k) && kind[k] == RELEASE -> witness(RELEASE_SETTLED_BY_READ); after(r, k)
		:: k != ver[r] && settles(r, k) && kind[k] != RELEASE -> witness(RENEWAL_SETTLED_BY_READ); confirmed(r, k)
		:: k != ver[r] && !settles(r, k) ->
			witness(LOST_BY_READ);
			if :: k != ABSENT -> learn(r, k) :: else fi;
			lose(r)
		fi
	fi;
#ifdef SLOWREAD
	asked[r] = 0;
#endif
	j = 0; k = 0
}

/* begin: the work starts. */
inline begin(r) {
	printf("replica %d: starts its work, epoch %d\n", called(r), epoch[ver[r]]);
	acting[r] = true;
	if :: epoch[ver[r]] == EPOCHS -> witness(LAST_EPOCH_ACTS) :: else fi;
	for (i : 0 .. N-1) {
		assert(i == r || !acting[i] || !acting[r])				/* I1 */
	}
	i = 0
}

/* seal the document, by one conditional write: see fence.pml. */
inline seal(r) {
	if
	:: docEpoch < epoch[ver[r]] || docEpoch == epoch[ver[r]] && docBy == me(r) ->
		if
		:: docEpoch != epoch[ver[r]] || docBy != me(r) ->
			docEpoch = epoch[ver[r]]; docBy = me(r);
#ifdef TELLS
			for (i : 0 .. N-1) { known[i] = false }
			i = 0
#endif
		:: else
		fi;
		sealed[r] = true
	:: else ->
		witness(SEAL_REFUSED);
		if :: docEpoch > epMax[r] -> epMax[r] = docEpoch :: else fi;
		quit(r)
	fi
}

/* fence reads the document's fence for r. */
inline fence(r) {
#ifdef MIXED
	if :: docEpoch > 0 && ttlOf(docBy) == TTL -> sawLong[r] = true :: else fi;
#endif
#ifdef TELLS
	news[r] = (docEpoch > 0 && !known[r] && !(docEpoch == held[r] && docBy == heldBy[r]));
	known[r] = true;
#ifdef LIVE
	looked[r] = true;
#endif
#endif
	skip
}

/*
 * informed: a seal that is new is of somebody who acquired since the fence was
 * read before. So absence counts from the next read that shows it.
 */
inline informed(r) {
#ifdef TELLS
	if
#ifndef MUT_ABSENCE_KEEPS_COUNTING
	:: news[r] && ver[r] == ABSENT -> witness(ABSENCE_COUNTS_ANEW); ver[r] = UNKNOWN; age[r] = 0; blind[r] = false; again(r)
#endif
	:: else
	fi;
	news[r] = false
#else
	skip
#endif
}

/* claim one above everything that is known. f is the fence's epoch. */
inline claim(r, f) {
	j = epMax[r];
	if :: f > j -> j = f :: else fi;
	if
	:: CALM || j < EPOCHS ->
		printf("replica %d: claims epoch %d on version %d\n", called(r), j+1, ver[r]);
		if :: tombstone(r) && !stood(r, 0) -> witness(TOMBSTONE_CLAIMED) :: else fi;
		send(r, ACQUIRE, j+1)
	:: else
	fi;
	j = 0
}

/* die: the process ends, the guard reads the end of the pipe and kills. */
inline die(r) {
	clear(r);
#ifdef DOC
	sealed[r] = false;
#endif
	acting[r] = false; ph[r] = STANDBY; ver[r] = UNKNOWN; age[r] = 0;
	op[r] = IDLE; opVal[r] = 0; epMax[r] = 0; held[r] = 0; heldBy[r] = NOBODY; blind[r] = false;
#ifdef TELLS
	known[r] = false; news[r] = false;
#ifdef LIVE
	looked[r] = false;
#endif
#endif
#ifdef MIXED
	sawLong[r] = false;
#endif
#ifdef SLOWREAD
	asked[r] = 0;
#endif
#ifdef LIVE
	polled[r] = false; tried[r] = false;
#endif
	inc[r]++;
	tidy()
}
