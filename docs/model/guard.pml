/*
 * The guard: one replica with its supervisor, its guard, and the tree of its work.
 *
 * It follows internal/guard/{loop,fire}_linux.go and internal/supervise/run.go.
 * What is left out stands in README.md beside it.
 *
 * Time is a tick. What runs is punctual: no tick comes while somebody who runs
 * has something due. What is frozen does nothing, whatever is due, for as long
 * as it may be. Spans are ticks that are left, so that nothing bounds a history.
 */

#ifndef LIFE
#define LIFE 4			/* ticks from the send of a write that landed to the deadline */
#endif
#ifdef MUT_NO_MARGIN
#define MARGIN 0
#else
#define MARGIN 1		/* of the kill before the deadline: dying takes up to a tick */
#endif

#ifndef WITNESS
#define WITNESS 0
#endif
/* witness(w) is violated if the search is for the situation w, to show that it occurs. */
#define witness(w) assert(WITNESS != w)
#define PROLONGED           1
#define NEVER_FORKS         2
#define KILLED_WHILE_FROZEN 3
#define TAKEN_OVER          4
#define DIES_AFTER_A_FREEZE 5

byte deadline = LIFE;		/* ticks until somebody else may act, by the writes that landed */

/* The supervisor. */
bool sUp = true, sFrozen;
byte mine = LIFE - MARGIN;	/* ticks to the kill instant, by the writes it was told of */
bool asked, landed;		/* a renewal is under way; it has landed */
byte since;			/* ticks since before its send */
bool started;			/* a run began: its guard was executed */
bool handed;			/* its guard was sent an instant */
bool ending;			/* the run was ordered to end */
bool overdue;			/* an order is not acknowledged */
bool gone;			/* the tree is proven to be gone */
bool over;			/* the lease was given back */

/* The guard of that run. */
bool gUp, gFrozen;
bool armed;			/* it has an instant */
byte left;			/* ticks to it */
bool fired;

/* The tree: the child, and what fled from its group. */
bool child, kids, cFrozen;

/* Orders in the pipe, oldest first: 0 none, DIE, or an instant as its ticks left, plus 1. */
#define DIE 99
byte first, second;

bool thawed;			/* since the last tick everything was frozen */

#define alive (child || kids)
#define sRuns (sUp && !sFrozen)
#define gRuns (gUp && !gFrozen)

#ifdef MUT_TIMED_BY_SUPERVISOR
#define expired false
#else
#define expired (armed && left == 0)
#endif

/* What is due before the next tick, if who has to do it runs. */
#define gDue (gRuns && !fired && (expired || first > 0 || !sUp))
#ifdef MUT_TIMED_BY_SUPERVISOR
#define sDue (sRuns && started && !gone && (overdue || !gUp || mine == 0 && !ending))
#else
#ifdef MUT_NO_SWEEP
#define sDue (sRuns && started && !gone && (overdue || !gUp && child || mine == 0 && alive && gFrozen))
#else
#define sDue (sRuns && started && !gone && (overdue || !gUp || mine == 0 && alive && gFrozen))
#endif
#endif

inline order(x) {
	if
	:: first == 0 -> first = x
	:: else -> second = x
	fi
}

inline fire() { fired = true; armed = false; left = 0; child = false; kids = false; first = 0; second = 0 }

/* take obeys the oldest order; the clock comes first. */
inline take() {
	if
	:: expired || first == DIE || !sUp -> printf("guard: kills\n"); fire()
	:: else ->
		left = first - 1; first = second; second = 0;
		if
		:: left == 0 -> printf("guard: kills, its instant has passed\n");
			if :: !armed -> witness(NEVER_FORKS) :: else fi;
			fire()
		:: left > 0 && !armed -> armed = true; printf("guard: forks\n"); child = true; kids = true
		:: left > 0 && armed -> printf("guard: has a later instant\n"); witness(PROLONGED)
		fi
	fi
}

/* fail: the supervisor gives the guard up, and kills and reaps the tree itself. */
inline fail() {
	printf("supervisor: kills guard and tree\n");
	if :: gFrozen && alive -> witness(TAKEN_OVER) :: else fi;
	gUp = false; gFrozen = false; fire(); fired = false;
	gone = true; ending = true; overdue = false
}

/* fresh: the next run has a guard of its own. */
inline fresh() {
	started = false; handed = false; ending = false; overdue = false; gone = false;
	gUp = false; gFrozen = false; armed = false; left = 0; fired = false; first = 0; second = 0
}

#define down(x) if :: x > 0 -> x-- :: else fi

proctype Supervisor() {
end:	do
	/* Start: the guard first, with an instant that has not passed. */
	:: d_step { sRuns && !started && !over && mine > 0 ->
		printf("supervisor: starts the guard\n");
#ifdef MUT_FORK_BEFORE_THE_INSTANT
		child = true; kids = true;
#endif
		started = true; gUp = true }
	:: d_step { sRuns && started && !handed && gUp && !ending && second == 0 -> printf("supervisor: hands over the instant\n"); handed = true; order(mine + 1) }
	/* Renew: the instants count from before the send. */
	:: d_step { sRuns && !asked && !over -> printf("supervisor: sends a renewal\n"); asked = true; landed = false; since = 0 }
	:: d_step { sRuns && asked && landed && second == 0 ->
		printf("supervisor: hears that it landed\n");
		if
		:: mine > 0 && since < LIFE - MARGIN ->
#ifdef MUT_COUNT_FROM_RECEIVE
			mine = LIFE - MARGIN;
#else
			mine = LIFE - MARGIN - since;
#endif
			if :: handed && !ending && gUp -> order(mine + 1) :: else fi
		:: else			/* too late: this term is not prolonged */
		fi;
		asked = false; landed = false; since = 0 }
	:: d_step { sRuns && asked -> asked = false; landed = false; since = 0 }

	/* End: by request or after a loss; the work that is slow is killed at its instant. */
	:: d_step { sRuns && started && !ending && gUp && second == 0 -> printf("supervisor: orders the end\n"); ending = true; order(DIE) }
#ifdef MUT_TIMED_BY_SUPERVISOR
	:: d_step { sRuns && started && !ending && gUp && mine == 0 -> printf("supervisor: the instant has come\n"); ending = true; order(DIE) }
#endif
	:: d_step { sDue && (overdue || !gUp || gFrozen) -> fail() }
	/* The proof: the guard says so, or we have reaped everything. */
	:: d_step { sRuns && started && fired && !alive && !gone -> printf("supervisor: hears that all are gone\n"); gone = true; ending = true }
#ifdef MUT_NO_SWEEP
	:: d_step { sRuns && started && !gUp && !child && !gone -> printf("supervisor: takes the guard's end for that of the tree\n"); gone = true; ending = true }
#endif
	/* Start again in the same term, or give the lease back. */
	:: d_step { sRuns && gone && !over -> fresh() }
#ifdef MUT_RELEASE_BEFORE_GONE
	:: d_step { sRuns && ending && !over ->
#else
	:: d_step { sRuns && (gone || !started) && !over ->
#endif
		printf("supervisor: releases\n");
		assert(!alive);							/* rule 8 */
		over = true; deadline = 0; asked = false; landed = false; since = 0 }
	od
}

proctype Guard() {
end:	do
	:: d_step { gRuns && !fired && first > 0 -> take() }
	:: d_step { gRuns && !fired && (expired || !sUp) -> printf("guard: kills\n");
		if :: sFrozen && alive && deadline > 0 -> witness(KILLED_WHILE_FROZEN) :: else fi;
		if :: alive && deadline == 0 -> witness(DIES_AFTER_A_FREEZE) :: else fi;
		fire() }
	od
}

proctype World() {
end:	do
	/* I4: nothing acts after the deadline, but for the tick after a freeze of everything. */
	:: d_step { alive && !cFrozen -> assert(deadline > 0 || thawed) }
	/* The child ends by itself; the guard ends what it left behind. */
	:: d_step { gRuns && child && !cFrozen -> printf("child: exits\n"); child = false }
	:: d_step { gRuns && armed && !child && !fired -> printf("guard: kills what is left\n"); fire() }

	:: d_step { asked && !landed && !over ->
		landed = true;
		if :: since < LIFE && LIFE - since > deadline -> deadline = LIFE - since :: else fi }

	/* Faults. Out of the claim: supervisor and guard both, while the child runs. */
	:: d_step { sRuns && !sDue && !gFrozen && !cFrozen -> printf("the supervisor freezes\n"); sFrozen = true }
	:: d_step { sFrozen && !cFrozen -> printf("the supervisor goes on\n"); sFrozen = false }
	:: d_step { gRuns && sRuns && !cFrozen -> printf("the guard freezes\n"); gFrozen = true }
	:: d_step { gFrozen && !cFrozen -> printf("the guard goes on\n"); gFrozen = false }
	:: d_step { !cFrozen && !gFrozen && !sFrozen -> printf("everything freezes\n"); cFrozen = true; sFrozen = true; gFrozen = gUp }
	:: d_step { cFrozen -> printf("everything goes on\n"); cFrozen = false; sFrozen = false; gFrozen = false; thawed = true }
	/* If the guard dies the kernel kills the child, not what fled from it. */
	:: d_step { gRuns && sRuns && !fired -> printf("the guard dies\n"); gUp = false; armed = false; left = 0; first = 0; second = 0; child = false }
	:: d_step { sRuns && !sDue && (gRuns || !alive) && !cFrozen -> printf("the supervisor dies\n"); sUp = false; asked = false; landed = false; since = 0 }

	:: d_step { !gDue && !sDue ->
		printf("tick\n");
		/* The first instant may wait for an executable that loads, but not beyond itself. */
		overdue = (sRuns && gFrozen && (armed && first > 0 || first == 1 || first == DIE || second == DIE));
		down(deadline);
		down(mine);
		if :: asked && since < LIFE -> since++ :: else fi;
#ifdef MUT_TIMER_STANDS_STILL
		if :: !cFrozen -> down(left) :: else fi;
#else
		down(left);
#endif
#ifndef MUT_RELATIVE_INSTANT
		if :: first > 1 && first != DIE -> first-- :: else fi;
		if :: second > 1 && second != DIE -> second-- :: else fi;
#endif
		thawed = false }
	od
}

init {
	atomic { run Supervisor(); run Guard(); run World() }
}
