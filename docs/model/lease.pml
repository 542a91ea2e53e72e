/*
 * The lease: one object, conditional writes, replicas that count time.
 *
 * It follows coordinator/{candidate,leader,release,doubt,ask}.go; what is left
 * out and what each bound means stands in README.md beside it.
 *
 * Time is a tick that may come between any two steps. A replica that takes no
 * step while ticks pass is frozen, cut off or slow: no fault of its own is needed
 * for that. Only the guard is punctual: it is part of the tick.
 */

#include "lease/state.pml"
#include "lease/names.pml"
#include "lease/rules.pml"
#include "lease/steps.pml"
#include "lease/world.pml"

#define reads(r) (mayAsk(r) && (ph[r] == STANDBY || quest[r]))

proctype Replica(byte r) {
end:	do
	/* A write is answered, or given up. */
	:: d_step { up(r) && op[r] == WRITE && net[opVal[r]] == LANDED -> printf("replica %d: hears that its write was taken\n", called(r));
		answered(r); tidy(); moved() }
	:: d_step { up(r) && op[r] == WRITE && net[opVal[r]] == REFUSED -> printf("replica %d: hears that its write was refused\n", called(r));
		answered(r); tidy(); moved() }
	:: d_step { up(r) && op[r] == WRITE && !CALM -> unanswered(r); tidy() }

	/* A read: of a standby, of a holder in question. */
#ifdef SLOWREAD
	:: d_step { up(r) && op[r] == IDLE && reads(r) -> printf("replica %d: sends a read\n", called(r)); op[r] = SENT; ask(r); moved() }
	:: d_step { op[r] == SENT -> op[r] = READ; opVal[r] = store; moved() }
	:: d_step { up(r) && op[r] == READ -> printf("replica %d: reads version %d\n", called(r), opVal[r]); brought(r); tidy(); moved() }
#else
	:: d_step { up(r) && op[r] == IDLE && reads(r) -> printf("replica %d: reads version %d\n", called(r), store);
		opVal[r] = store; ask(r); brought(r); tidy(); moved() }
#endif

	/* A candidate claims. With a document its fence is read in the attempt. */
#ifdef DOC
	:: d_step { up(r) && ph[r] == STANDBY && op[r] == IDLE && sighted(r) && (stood(r, 0) || tombstone(r) && untried(r)) ->
		printf("replica %d: reads the fence, epoch %d\n", called(r), docEpoch);
		op[r] = FENCE; opVal[r] = docEpoch; fence(r); moved() }
	:: d_step { up(r) && op[r] == FENCE ->
		k = opVal[r]; op[r] = IDLE; opVal[r] = 0; informed(r);
		if
		:: sighted(r) && (stood(r, k) || trusted(r, k)) -> claim(r, k)
		:: else ->
			if :: tombstone(r) && k > epoch[ver[r]] -> witness(TOMBSTONE_DISTRUSTED) :: else fi;
#ifdef LIVE
			tried[r] = true
#endif
		fi;
		k = 0; moved() }
#ifdef TELLS
	/* It also reads it now and then, and once it sees absence. */
	:: d_step { up(r) && ph[r] == STANDBY && op[r] == IDLE && ver[r] != UNKNOWN && doubts[r] == 0 && rehearses(r) ->
		printf("replica %d: reads the fence ahead, epoch %d\n", called(r), docEpoch); fence(r); informed(r); tidy(); moved() }
#endif
#else
	:: d_step { up(r) && ph[r] == STANDBY && op[r] == IDLE && sighted(r) && (stood(r, 0) || trusted(r, 0)) -> claim(r, 0); moved() }
#ifdef LIVE
	:: d_step { up(r) && ph[r] == STANDBY && op[r] == IDLE && tombstone(r) && untried(r) && !trusted(r, 0) -> tried[r] = true; moved() }
#endif
#endif

	/* A holder renews, and starts its work. */
	:: d_step { up(r) && ph[r] == LEADING && op[r] == IDLE && !quest[r] && age[r] > 0 && age[r] < life(r) && mayAsk(r) ->
		ask(r); printf("replica %d: renews version %d\n", called(r), ver[r]); send(r, RENEW, epoch[ver[r]]); moved() }
#ifdef DOC
	:: d_step { up(r) && ph[r] == LEADING && !acting[r] && !sealed[r] && age[r] < life(r) ->
		printf("replica %d: seals epoch %d\n", called(r), epoch[ver[r]]); seal(r); tidy(); moved() }
	:: d_step { up(r) && ph[r] == LEADING && sealed[r] && age[r] < life(r) -> sealed[r] = false;
#ifdef READ_AFTER_SEAL
		printf("replica %d: reads version %d after its seal\n", called(r), store);
		if :: ver[r] == store || ourTerm(r) -> begin(r) :: else -> lose(r) fi;
#else
		begin(r);
#endif
		tidy(); moved() }
#else
	:: d_step { up(r) && ph[r] == LEADING && !acting[r] && age[r] < life(r) -> begin(r); tidy(); moved() }
#endif
	:: d_step { up(r) && ph[r] == LEADING && acting[r] && !CALM -> printf("replica %d: its work ends\n", called(r)); acting[r] = false }

	/* Its term ends: by request, with its work, or not renewed in time. Work first, lease second. */
#ifdef MUT_RELEASE_BEFORE_STOP
	:: d_step { up(r) && ph[r] == LEADING && (!CALM || age[r] >= stopAt(r)) -> quit(r); tidy(); moved() }
#else
	:: d_step { up(r) && ph[r] == LEADING && (!CALM || age[r] >= stopAt(r)) ->
		printf("replica %d: stops its work\n", called(r)); acting[r] = false; quit(r); tidy(); moved() }
#endif
	:: d_step { up(r) && ph[r] == RELEASING && op[r] == IDLE && !quest[r] && mayAsk(r) ->
		printf("replica %d: releases version %d\n", called(r), ver[r]); ask(r); send(r, RELEASE, epoch[ver[r]]); moved() }
	:: d_step { up(r) && ph[r] == RELEASING && op[r] == IDLE && !CALM -> printf("replica %d: gives up its release\n", called(r)); after(r, UNKNOWN); tidy() }

#ifdef MUT_GUARD_BY_SUPERVISOR
	:: d_step { up(r) && acting[r] && age[r] >= life(r) -> acting[r] = false }
#endif
#if CRASHES > 0
	:: d_step { crashes > 0 && !CALM -> printf("replica %d: dies\n", called(r)); crashes--; die(r) }
#endif
	od
}

/* store takes write id, late or not; a request that nobody waits for may get lost. */
#define write(id) \
	:: d_step { net[id] == FLYING -> arrive(id) } \
	:: d_step { net[id] == FLYING && !waiting(id) -> free(id); tidy() }

proctype World() {
end:	do
	write(1) write(2) write(3) write(4) write(5) write(6) write(7)
#if N > 2
	write(8) write(9) write(10)
#endif

	/* Time passes, and with it comes the guard. */
#if defined(DRIFT)
	:: d_step { steady > 0 -> steady--; tick(NOBODY) }
	:: d_step { steady == 0 -> tick(NOBODY) }
	:: d_step { steady == 0 -> steady = TTL-1; tick(0) }
	:: d_step { steady == 0 -> steady = TTL-1; tick(1) }
#elif defined(LIVE)
	:: d_step { !calm || quiet && calmTicks <= WITHIN -> tick(NOBODY) }
#else
	:: d_step { tick(NOBODY) }
#endif

#if DELETES > 0
	:: d_step { deletes > 0 && store != ABSENT && mayDelete && !CALM ->
		printf("operator: deletes the lease\n"); deletes--; touched = true;
		for (i : 0 .. N-1) {
			if :: ph[i] == STANDBY && ver[i] == ABSENT && untold(i) -> blind[i] = true :: else fi
		}
		i = 0; store = ABSENT; tidy() }
#endif
#if RESTORES > 0
	:: d_step { restores > 0 && tomb[1] > 0 && mayRestore && !CALM -> restore(1) }
	:: d_step { restores > 0 && tomb[2] > 0 && mayRestore && !CALM -> restore(2) }
#endif

#ifdef LIVE
	/* From here on nothing fails any more; at most one replica stays away. */
	:: d_step { !calm -> printf("faults stop\n"); calm = true; still() }
	:: d_step { !calm -> printf("faults stop\n"); calm = true; down = 0; die(0); still() }
	:: d_step { !calm -> printf("faults stop\n"); calm = true; down = 1; die(1); still() }
#if N > 2
	:: d_step { !calm -> printf("faults stop\n"); calm = true; down = 2; die(2); still() }
#endif
	/* Nobody can do anything: then time must be up. */
	:: d_step { timeout -> assert(!calm || calmTicks > WITHIN) }				/* I5 */
#endif
	od
}

init {
	d_step {
		for (i : 0 .. N-1) { ver[i] = UNKNOWN; heldBy[i] = NOBODY }
		i = 0;
#ifdef FORMER
		/* A lease and a document that a former process left, properly released. */
		kind[1] = RELEASE; owner[1] = FORMERLY; epoch[1] = 1; store = 1; highest = 1;
#ifdef DOC
		docEpoch = 1; docBy = FORMERLY;
#endif
#if RESTORES > 0
		tomb[1] = FORMERLY + 1;
#endif
#endif
	}
	atomic {
		run World();
		run Replica(0);
		run Replica(1);
#if N > 2
		run Replica(2);
#endif
	}
}
