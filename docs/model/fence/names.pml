/*
 * Renaming, in C because it is no step of the protocol and has to be fast. It
 * makes equal situations one state: terms are numbered in the order in which
 * somebody knows of them, and replicas, which are all alike, are sorted. name is
 * for traces only.
 */
#define TERMS (3*N+3)
c_code {
	static unsigned char name[N] = { 0, 1,
#if N > 2
		2,
#endif
	};

#define each(i) for (i = 0; i < N; i++)

	static long rank(int r)
	{
		long k = now.at[r];
		k = k * 4 + now.net[r];
		k = k * 8 + now.epoch[r];
		k = k * 8 + now.prog[r];
		k = k * 2 + now.late[r];
		k = k * 2 + now.cur[r];
		k = k * 2 + now.sawCur[r];
		k = k * 2 + now.fresh[r];
		k = k * 2 + now.sawOwn[r];
		k = k * 8 + now.sawEpoch[r];
		k = k * 8 + now.sawCp[r];
		k = k * 8 + now.lateEpoch[r];
		k = k * 8 + now.lateCp[r];
		k = k * 2 + now.lateSeal[r];
		k = k * 2 + (now.term[r] == now.docTerm);
		k = k * 2 + (now.writer == r);
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
		move(name) move(now.at) move(now.epoch) move(now.term) move(now.prog) move(now.fresh) move(now.net) move(now.cur)
		move(now.sawEpoch) move(now.sawTerm) move(now.sawCp) move(now.sawCur) move(now.sawOwn)
		move(now.late) move(now.lateSeal) move(now.lateCall) move(now.lateEpoch) move(now.lateTerm) move(now.lateCp)
#undef move
		if (now.writer < N) now.writer = to[now.writer];
	}

	static void number(void)
	{
		unsigned char id[TERMS+1];
		int i, n = 0;
		memset(id, 0, sizeof id);
#define know(x) if (x) { if (!id[x]) id[x] = ++n; (x) = id[x]; }
		know(now.docTerm)
		know(now.sealed)
		each(i) {
			know(now.term[i])
			know(now.sawTerm[i])
			know(now.lateTerm[i])
		}
#undef know
	}

	static void rename_all(void)
	{
#ifndef UNSORTED
		sort();
#endif
		number();
	}
}
#define tidy()    c_code { rename_all(); }
#define called(r) c_expr { (int) name[PReplica->r] }
