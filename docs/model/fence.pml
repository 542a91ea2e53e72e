/*
 * The checkpoint document: seal and commit.
 *
 * It follows checkpoint/{seal,commit,session}.go. There is no time here, and the
 * election is an adversary: it may grant any replica a term with any epoch at any
 * moment, also two terms with one epoch, and no term ever ends by itself, so that
 * everybody is a stale leader who goes on trying. What is left out stands in
 * README.md beside it.
 *
 * A version is only ever compared with the current one, so it needs no number:
 * cur says whether the version that somebody holds still is the document's.
 */

#ifndef N
#define N 2			/* replicas */
#endif
#ifndef EPOCHS
#define EPOCHS 2		/* the epochs of terms, of which there is no end */
#endif
#ifndef STEPS
#define STEPS 3			/* the checkpoint goes from 0 to STEPS */
#endif
#ifndef WITNESS
#define WITNESS 0
#endif

/* at, where a replica stands */
#define OFF    0
#define SREAD  1		/* seal: the document has to be read */
#define SHAVE  2		/* seal: it was read, the write is to be sent */
#define SWAIT  3		/* seal: the write is under way */
#define READY  4		/* the work runs, no commit under way */
#define CREAD  5		/* the same for a commit */
#define CHAVE  6
#define CWAIT  7
#define LOAD   8		/* a child of its own store has not loaded the document */

/* net, where a write is */
#define NONE    0
#define FLYING  1
#define LANDED  2
#define REFUSED 3

/* witness(w) is violated if the search is for the situation w, to show that it occurs. */
#define witness(w) assert(WITNESS != w)
#define SEAL_SETTLED_BY_READ   1
#define COMMIT_SETTLED_BY_READ 2
#define COMMIT_FENCED          3
#define COMMIT_MERGED          4
#define LATE_SEAL_LANDS        5
#define LATE_COMMIT_LANDS      6
#define LAST_STEP              7

/* The document. Epoch and term are the pair of its fence. */
byte docEpoch, docTerm, docCp;

/* A replica, its term, and how far its work has come. */
byte at[N], epoch[N], term[N], prog[N];
/* The document as it last read or wrote it. */
byte sawEpoch[N], sawTerm[N], sawCp[N];
bool sawCur[N];			/* that version is the document's */
bool sawOwn[N];			/* it was written by the call under way */
bool fresh[N];			/* no answer left open whether it still is the document's */
/* The write it waits for. */
byte net[N];
bool cur[N];			/* its condition is the document's version */
/* One write that it gave up: what it carries, and whether it may yet land. */
bool late[N], lateSeal[N], lateCall[N];
byte lateEpoch[N], lateTerm[N], lateCp[N];

byte writer = 255;		/* whose call under way wrote the document, or 255 */
byte sealed;			/* the term that sealed, or started, last: only for judging */
byte i, j, k, l;		/* scratch; 0 between steps */

#include "fence/names.pml"

inline gone(r) {
	late[r] = false; lateSeal[r] = false; lateCall[r] = false; lateEpoch[r] = 0; lateTerm[r] = 0; lateCp[r] = 0
}

/* changed: the document has a new version, and no write on an older one can land. */
inline changed() {
	for (i : 0 .. N-1) {
		sawCur[i] = false; cur[i] = false; gone(i)
	}
	i = 0;
	writer = 255
}

/* put applies a write. by is the term that sends it, ep and tm the pair it carries. */
inline put(isSeal, by, ep, tm, cp) {
	if
	:: isSeal ->
		assert(ep > docEpoch || tm == docTerm);				/* I2: sealed epochs rise */
		sealed = by
	:: else ->
		assert(by == sealed && tm == docTerm)				/* I3 */
	fi;
	assert(cp >= docCp);							/* I6 */
	docEpoch = ep; docTerm = tm; docCp = cp;
	if :: docEpoch == EPOCHS && docCp == STEPS -> witness(LAST_STEP) :: else fi
}

/* leave forgets what was under way; a write that may yet land is a late one. */
inline leave(r) {
	if
	:: net[r] == FLYING && cur[r] ->
		late[r] = true; lateSeal[r] = (at[r] == SWAIT);
		lateEpoch[r] = epoch[r]; lateTerm[r] = term[r];
		lateCp[r] = (at[r] == SWAIT -> sawCp[r] : prog[r])
	:: else
	fi;
	net[r] = NONE; cur[r] = false
}

/* call begins a call: what an earlier one sent is not this one's. */
inline call(r) {
	lateCall[r] = false;
	if :: writer == r -> writer = 255 :: else fi
}

inline look(r) {
	sawEpoch[r] = docEpoch; sawTerm[r] = docTerm; sawCp[r] = docCp;
	sawCur[r] = true; sawOwn[r] = (writer == r); fresh[r] = (at[r] >= READY)
}

inline blank(r) {
	sawEpoch[r] = 0; sawTerm[r] = 0; sawCp[r] = 0; sawCur[r] = false; sawOwn[r] = false; fresh[r] = false
}

inline off(r) {
	call(r);
	at[r] = OFF; epoch[r] = 0; term[r] = 0; prog[r] = 0; blank(r)
}

/* begin: the work of a sealed term starts from what the document says. */
inline begin(r) {
	prog[r] = sawCp[r]; sawCp[r] = 0; sawOwn[r] = false; fresh[r] = true; call(r);
#ifdef CHILD
	at[r] = LOAD; prog[r] = 0; blank(r)
#else
	at[r] = READY
#endif
}

/* Who may seal what was read: a lower epoch, and its own pair. */
#ifdef MUT_SEAL_AT_EQUAL_EPOCH
#define maySeal(r) (sawEpoch[r] <= epoch[r])
#else
#define maySeal(r) (sawEpoch[r] < epoch[r] || sawEpoch[r] == epoch[r] && sawTerm[r] == term[r])
#endif

#if defined(MUT_NO_JUDGE) || defined(MUT_NO_SEAL)
#define ownPair(r) true
#else
#define ownPair(r) (sawEpoch[r] == epoch[r] && sawTerm[r] == term[r])
#endif

#ifdef MUT_COMMIT_WITHOUT_CONDITION
#define accepts(r) (cur[r] || at[r] == CWAIT)
#else
#ifdef MUT_SEAL_WITHOUT_CONDITION
#define accepts(r) (cur[r] || at[r] == SWAIT)
#else
#define accepts(r) cur[r]
#endif
#endif

#ifdef LIMIT_LOADS_LATE
#define guarded(r) true
#else
/* The guard has killed what belongs to a term that was replaced. */
#define guarded(r) (docTerm == term[r])
#endif

/* At most one write of a process may be late. */
#define mayLeave(r) (net[r] != FLYING || !cur[r] || !late[r])

#define grant(ep) :: d_step { at[r] == OFF -> \
	j = 1; \
	do :: known(j) -> j++ :: else -> break od; \
	printf("replica %d: is given a term of epoch %d\n", called(r), ep); \
	at[r] = SREAD; term[r] = j; epoch[r] = ep; j = 0; tidy() }

#if N == 2
#define knows(r, t) (term[r] == t || sawTerm[r] == t || lateTerm[r] == t)
#define known(t)    (docTerm == t || sealed == t || knows(0, t) || knows(1, t))
#else
#define knows(r, t) (term[r] == t || sawTerm[r] == t || lateTerm[r] == t)
#define known(t)    (docTerm == t || sealed == t || knows(0, t) || knows(1, t) || knows(2, t))
#endif

proctype Replica(byte r) {
end:	do
	/* The election: any epoch, and a term id that nobody has. */
	grant(1)
#if EPOCHS > 1
	grant(2)
#endif
#if EPOCHS > 2
	grant(3)
#endif

	/* Seal: read, judge, write on what was judged. */
	:: d_step { at[r] == SREAD -> printf("replica %d: reads, to seal epoch %d\n", called(r), epoch[r]); look(r); at[r] = SHAVE; tidy() }
	:: d_step { at[r] == SHAVE ->
		if
#ifdef MUT_NO_SEAL
		:: maySeal(r) -> printf("replica %d: starts\n", called(r)); sealed = term[r]; begin(r)
		:: else -> off(r)
#else
		:: sawOwn[r] -> printf("replica %d: its seal had landed\n", called(r)); witness(SEAL_SETTLED_BY_READ); begin(r)
		:: !sawOwn[r] && maySeal(r) -> printf("replica %d: sends its seal\n", called(r)); net[r] = FLYING; cur[r] = sawCur[r]; at[r] = SWAIT
		:: !sawOwn[r] && !maySeal(r) -> printf("replica %d: is fenced\n", called(r)); off(r)
#endif
		fi;
		tidy() }
	:: d_step { at[r] == SWAIT && net[r] == FLYING ->
		if
		:: accepts(r) -> printf("store: takes the seal of replica %d\n", called(r));
			put(true, term[r], epoch[r], term[r], sawCp[r]); changed(); net[r] = LANDED; writer = r
		:: else -> net[r] = REFUSED
		fi;
		tidy() }
	:: d_step { at[r] == SWAIT && net[r] == LANDED -> printf("replica %d: hears that it sealed\n", called(r));
		/* It holds the version that came back, unless somebody has written since. */
		net[r] = NONE; sawEpoch[r] = epoch[r]; sawTerm[r] = term[r]; sawCur[r] = (writer == r); begin(r); tidy() }
	:: d_step { at[r] == SWAIT && net[r] == REFUSED -> net[r] = NONE; blank(r); at[r] = SREAD; tidy() }
	:: d_step { at[r] == SWAIT && mayLeave(r) -> printf("replica %d: gets no answer to its seal\n", called(r));
		j = (net[r] == FLYING && cur[r]);
		leave(r);
#ifdef MUT_LOST_SEAL_COUNTS
		sealed = term[r]; sawEpoch[r] = epoch[r]; sawTerm[r] = term[r]; begin(r);
#else
		if :: j -> lateCall[r] = true :: else fi;
		blank(r); at[r] = SREAD;
#endif
		j = 0; tidy() }

	/* Commit: on the version that is known; after a conflict or no answer, read first. */
#ifndef CHILD
	:: d_step { at[r] == READY && prog[r] < STEPS -> prog[r]++; call(r); at[r] = (fresh[r] -> CHAVE : CREAD); tidy() }
	:: d_step { at[r] == CREAD -> printf("replica %d: reads, to commit %d\n", called(r), prog[r]);
		look(r); sawCp[r] = 0;
		if
		:: !ownPair(r) -> printf("replica %d: is fenced\n", called(r)); witness(COMMIT_FENCED); off(r)
		:: ownPair(r) && sawOwn[r] -> witness(COMMIT_SETTLED_BY_READ); sawOwn[r] = false; call(r); at[r] = READY
		:: ownPair(r) && !sawOwn[r] ->
			if :: docCp > 0 && docCp != prog[r] -> witness(COMMIT_MERGED) :: else fi;
			at[r] = CHAVE
		fi;
		tidy() }
	:: d_step { at[r] == CHAVE -> printf("replica %d: sends commit %d\n", called(r), prog[r]);
		net[r] = FLYING; cur[r] = sawCur[r]; at[r] = CWAIT; tidy() }
	:: d_step { at[r] == CWAIT && net[r] == REFUSED -> net[r] = NONE; blank(r); at[r] = CREAD; tidy() }
	:: d_step { at[r] == CWAIT && mayLeave(r) -> printf("replica %d: gets no answer to commit %d\n", called(r), prog[r]);
		j = (net[r] == FLYING && cur[r]);
		leave(r);
		if :: j -> lateCall[r] = true :: else fi;
		blank(r); at[r] = CREAD; j = 0; tidy() }
	/* The call gives up; the next one has to read first, if this one had to. */
	:: d_step { at[r] == CREAD || at[r] == CHAVE -> printf("replica %d: gives up commit %d\n", called(r), prog[r]);
		call(r); at[r] = READY; tidy() }
#else
	/* A child with a store of its own loads once, and rewrites all that it loaded. */
	:: d_step { at[r] == LOAD && guarded(r) -> printf("child %d: loads\n", called(r)); look(r); prog[r] = docCp; sawCp[r] = 0; sawOwn[r] = false; at[r] = READY; tidy() }
	:: d_step { at[r] == READY && prog[r] < STEPS -> prog[r]++; call(r); printf("child %d: sends commit %d\n", called(r), prog[r]);
		net[r] = FLYING; cur[r] = sawCur[r]; at[r] = CWAIT; tidy() }
#endif
	:: d_step { at[r] == CWAIT && net[r] == FLYING ->
		if
		:: accepts(r) -> printf("store: takes commit %d of replica %d\n", prog[r], called(r));
			put(false, term[r], sawEpoch[r], sawTerm[r], prog[r]); changed(); net[r] = LANDED; writer = r
		:: else -> net[r] = REFUSED
		fi;
		tidy() }
	:: d_step { at[r] == CWAIT && net[r] == LANDED -> printf("replica %d: hears that it committed\n", called(r));
		net[r] = NONE; sawCur[r] = (writer == r); fresh[r] = true; call(r); at[r] = READY; tidy() }

	/* The work ended and starts again within the term: it is sealed again. */
	:: d_step { (at[r] >= READY) && mayLeave(r) -> printf("replica %d: starts its work again\n", called(r));
		leave(r); call(r); prog[r] = 0; blank(r);
#ifdef MUT_NO_SEAL_AT_RESTART
		look(r);
		if :: docTerm == term[r] -> begin(r) :: else -> off(r) fi;
#else
		at[r] = SREAD;
#endif
		tidy() }
	/* It steps down, or dies. */
	:: d_step { at[r] != OFF && mayLeave(r) -> printf("replica %d: ends\n", called(r)); leave(r); off(r); tidy() }

	/* A write that was given up lands, or never does. */
	:: d_step { late[r] -> printf("store: takes a late write of replica %d\n", called(r));
		j = lateCall[r];
		if :: lateSeal[r] -> witness(LATE_SEAL_LANDS) :: else -> witness(LATE_COMMIT_LANDS) fi;
		/* Nothing has changed since it was sent, so that a commit carries the document's own pair. */
		k = (lateSeal[r] -> lateEpoch[r] : docEpoch);
		l = (lateSeal[r] -> lateTerm[r] : docTerm);
		put(lateSeal[r], lateTerm[r], k, l, lateCp[r]); changed();
		if :: j -> writer = r :: else fi;
		j = 0; k = 0; l = 0; tidy() }
	:: d_step { late[r] -> gone(r); tidy() }
	od
}

init {
	atomic {
		run Replica(0);
		run Replica(1);
#if N > 2
		run Replica(2);
#endif
	}
}
