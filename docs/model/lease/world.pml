/* What nobody decides: time, and the operator's hand. */

/* tick: late is the replica whose clock loses it. */
inline tick(late) {
	printf("tick\n");
	for (i : 0 .. N-1) {
		if
		:: i != late && ver[i] != UNKNOWN && age[i] < TTL -> age[i]++
		:: else
		fi;
#ifdef SLOWREAD
		if :: (op[i] == SENT || op[i] == READ) && ph[i] == STANDBY && asked[i] < TTL -> asked[i]++ :: else fi;
#endif
#ifdef MUT_SETTLE_AS_LATEST
		if :: latest[i] < TTL -> latest[i]++ :: else fi;
#endif
#ifdef LIVE
		polled[i] = false;
#endif
#ifndef MUT_GUARD_BY_SUPERVISOR
		/* I4: the guard kills at the instant, whatever the supervisor does. */
		if :: acting[i] && age[i] >= life(i) -> acting[i] = false :: else fi
#endif
	}
	for (i : 1 .. IDS) {
		if
		:: kind[i] != FREE && since[i] < TTL && !(late < N && owner[i] % N == late) ->
#ifdef MUT_WALL_CLOCK
			since[i]++
#else
			if :: (doubt[i] || waiting(i)) && kind[i] != RELEASE && ph[owner[i] % N] != RELEASING -> since[i]++ :: else fi
#endif
		:: else
		fi
	}
	i = 0;
#ifdef LIVE
	if
	:: calm ->
		calmTicks++; moves = 0;
		assert(calmTicks <= WITHIN || settledDown)				/* I5 */
	:: else
	fi
#endif
}

/* restore puts the tombstone of an epoch back, as a new version. */
inline restore(ep) {
	printf("operator: restores the tombstone of epoch %d\n", ep); restores--; touched = true;
	i = 1;
	do
	:: i <= IDS && kind[i] != FREE -> i++
	:: else -> break
	od;
	assert(i <= IDS);
	kind[i] = RELEASE; owner[i] = tomb[ep] - 1; epoch[i] = ep; store = i; i = 0;
	tidy()
}

/* still: requests that nobody waits for are lost when faults stop, or have landed before. */
inline still() {
	for (i : 1 .. IDS) {
		if :: net[i] == FLYING && !waiting(i) -> free(i) :: else fi
	}
	i = 0;
	for (i : 0 .. N-1) { if :: blind[i] -> ver[i] = UNKNOWN; age[i] = 0; blind[i] = false :: else fi }
	i = 0;
	tidy()
}
