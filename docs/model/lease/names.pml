/*
 * Renaming, in C because it is no step of the protocol and has to be fast. It
 * makes equal situations one state: writes that nobody can meet any more are
 * forgotten, the others are numbered in the order in which somebody knows of
 * them, and replicas, which are all alike, are sorted. It only permutes: a
 * replica's rank decides how much is saved, never what is found. name is for
 * traces.
 */
c_code {
	static unsigned char name[N] = { 0, 1,
#if N > 2
		2,
#endif
	};

#define each(i) for (i = 0; i < N; i++)

	static long rank(int r)
	{
		int v = now.ver[r], o = now.op[r] == READ || now.op[r] == WRITE ? now.opVal[r] : 0;
		long k = now.ph[r];
		k = k * 2 + now.acting[r];
#ifdef DOC
		k = k * 2 + now.sealed[r];
#endif
#ifdef TELLS
		k = k * 2 + now.known[r];
#endif
		k = k * 8 + now.op[r];
		k = k * 4 + (v == now.store ? 0 : v == UNKNOWN ? 1 : v == ABSENT ? 2 : 3);
		k = k * 8 + now.age[r];
		k = k * 8 + now.epMax[r];
		k = k * 4 + now.doubts[r];
		k = k * 4 + now.inc[r];
		k = k * 4 + now.net[o];
		k = k * 8 + now.since[o];
		k = k * 4 + now.kind[o];
		k = k * 8 + now.epoch[o];
		k = k * 2 + now.quest[r];
		k = k * 2 + (now.heldBy[r] == NOBODY);
		k = k * 2 + (now.heldBy[r] == r + N*now.inc[r]);
		k = k * 2 + (now.owner[now.store] == r + N*now.inc[r]);
		return k;
	}

	static void sort(void)
	{
		unsigned char from[N], to[N], t[N];
		long key[N];
		int i, j;
		each(i) {
			key[i] = rank(i);
			for (j = i; j > 0 && key[from[j-1]] > key[i]; j--)
				from[j] = from[j-1];
			from[j] = i;
		}
		each(i) to[from[i]] = i;
#define move(a) { each(i) t[i] = a[from[i]]; each(i) a[i] = t[i]; }
		move(name) move(now.ph) move(now.ver) move(now.age) move(now.acting) move(now.quest) move(now.doubts)
		move(now.doubtAbsent) move(now.op) move(now.opVal) move(now.epMax) move(now.held) move(now.heldBy) move(now.inc) move(now.blind)
#ifdef LIVE
		move(now.polled) move(now.tried)
#ifdef TELLS
		move(now.looked)
#endif
		if (now.down != NOBODY) now.down = to[now.down];
#endif
#ifdef SLOWREAD
		move(now.asked)
#endif
#ifdef MUT_SETTLE_AS_LATEST
		move(now.latest)
#endif
#ifdef DOC
		move(now.sealed)
#endif
#ifdef TELLS
		move(now.known) move(now.news)
#endif
#undef move
#define rename(who) if ((who) < FORMERLY) (who) = (who) / N * N + to[(who) % N];
		each(i) rename(now.heldBy[i])
		for (i = 1; i <= IDS; i++) if (now.kind[i] != FREE) rename(now.owner[i])
		if (now.docEpoch > 0) rename(now.docBy)
#if RESTORES > 0
		for (i = 0; i < EPOCHS+3; i++)
			if (now.tomb[i] > 0) { now.tomb[i]--; rename(now.tomb[i]) now.tomb[i]++; }
#endif
#undef rename
	}

	static void number(void)
	{
		unsigned char to[IDS+2], from[IDS+1], t[IDS+1];
		int i, n = 0;
		memset(to, 0, sizeof to);
#define keep(id) if ((id) != ABSENT && (id) != UNKNOWN && !to[id]) { to[id] = ++n; from[n] = (id); }
		keep(now.store)
		each(i) {
			keep(now.ver[i])
			if (now.op[i] == READ || now.op[i] == WRITE)
				keep(now.opVal[i])
		}
		for (i = 1; i <= IDS; i++)
			if (now.net[i] == FLYING)
				keep(i)
#undef keep
		to[UNKNOWN] = UNKNOWN;
#define move(a) { for (i = 1; i <= n; i++) t[i] = a[from[i]]; for (i = 1; i <= IDS; i++) a[i] = i <= n ? t[i] : 0; }
		move(now.kind) move(now.net) move(now.owner) move(now.epoch) move(now.cond) move(now.since) move(now.doubt)
#undef move
		for (i = 1; i <= n; i++)
			now.cond[i] = to[now.cond[i]];
		now.store = to[now.store];
		each(i) {
			now.ver[i] = to[now.ver[i]];
			if (now.op[i] == READ || now.op[i] == WRITE)
				now.opVal[i] = to[now.opVal[i]];
		}
	}

	static void rename_all(void)
	{
#if !defined(MIXED) && !defined(UNSORTED)	/* replicas with different ttls are not alike */
		sort();
#endif
		number();
	}
}

#define called(r) c_expr { (int) name[PReplica->r] }
#define sender    c_expr { (int) name[now.k] }		/* with k = owner % N */

inline free(id) {
	kind[id] = FREE; net[id] = SETTLED; owner[id] = 0; epoch[id] = 0; cond[id] = 0; since[id] = 0; doubt[id] = false
}

/* tidy drops what makes no difference any more. Every step ends with it. */
inline tidy() {
	for (i : 1 .. IDS) {
		if
		:: kind[i] == FREE
		:: else ->
			/* 1. A write on a version that is gone can never land: none comes back. */
			if
#ifdef LIMIT_TWO_ABSENCES
			:: net[i] == FLYING && cond[i] != store && (cond[i] != ABSENT || deletes == 0) -> net[i] = REFUSED; cond[i] = 0
#else
			:: net[i] == FLYING && cond[i] != store -> net[i] = REFUSED; cond[i] = 0
#endif
			:: else
			fi;
			/* 2. What nobody waits for has no answer. */
			if
			:: !waiting(i) && net[i] == LANDED -> net[i] = SETTLED
			:: else
			fi;
			/* 3. A write that no term may come to count from has no age. */
#ifndef MUT_WALL_CLOCK
			if
			:: !doubt[i] && !waiting(i) || kind[i] == RELEASE || ph[owner[i] % N] == RELEASING -> since[i] = 0
			:: else
			fi
#endif
		fi
	}
	i = 0;
	c_code { rename_all(); }
}
