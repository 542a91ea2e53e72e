/* Who may do what, and when. */

/*
 * How long a holder counts on a write, on its own clock. With DRIFT clocks are
 * explicit: among any TTL ticks in a row one clock may lose one, and the holder
 * allows for it. Without, a holder is simply given the whole ttl: that is what
 * the allowance comes to if its clock is as late as it may be.
 */
#if defined(DRIFT) && !defined(MUT_NO_DRIFT_ALLOWANCE)
#define ALLOWANCE 1
#else
#define ALLOWANCE 0
#endif

#ifdef MIXED			/* replica 0 has the longer ttl */
#define ttlOf(who) ((who) < FORMERLY && (who) % N == 0 -> TTL : TTL-1)
#else
#define ttlOf(who) TTL
#endif
#define life(r)   (ttlOf(r) - ALLOWANCE)
#define stopAt(r) (life(r) - 1)	/* work is told to end, if nothing was renewed */

/*
 * How long the state last seen has to stand. f is the fence's epoch, or 0: a
 * record below an epoch that is known has the ttl of a former term.
 */
#if defined(MIXED) && !defined(MUT_OWN_TTL_ONLY)
#define outranked(r, f) (ver[r] == ABSENT || epoch[ver[r]] < epMax[r] || epoch[ver[r]] < f)
#define window(r, f) (outranked(r, f) && sawLong[r] || ver[r] != ABSENT && ttlOf(owner[ver[r]]) == TTL -> TTL : ttlOf(r))
#else
#define window(r, f) ttlOf(r)
#endif

#if defined(MUT_WALL_CLOCK)
/* The record's expires_at against a clock that is two ticks ahead of its writer's. */
#define stood(r, f) (ver[r] != ABSENT && !tombstone(r) -> since[ver[r]] + 2 >= window(r, f) : age[r] >= window(r, f))
#elif defined(MUT_MISSING_IS_FREE)
#define stood(r, f) (ver[r] == ABSENT || age[r] >= window(r, f))
#else
#define stood(r, f) (age[r] >= window(r, f))
#endif

/* Rule 11: a tombstone that is claimed without waiting. f is the fence's epoch. */
#if defined(MUT_TOMBSTONE_TRUSTED)
#define trusted(r, f) tombstone(r)
#else
#define trusted(r, f) (tombstone(r) && epoch[ver[r]] >= epMax[r] \
	&& (f > 0 -> (held[r] != epoch[ver[r]] || heldBy[r] == owner[ver[r]]) && epoch[ver[r]] >= f \
		: held[r] == epoch[ver[r]] && heldBy[r] == owner[ver[r]]))
#endif

/* The document's fence is of the term in the lease. */
#ifdef DOC
#define isSealed (docEpoch == epoch[store] && docBy == owner[store])
#else
#define isSealed false
#endif

/* A second absence shows, unless no seal is new by the time of the attempt. */
#ifdef TELLS
#define untold(r) (kind[store] != RELEASE && (!isSealed || op[r] == FENCE && !news[r]))
#else
#define untold(r) true
#endif

/* What is claimed was seen, and is not two absences that look like one. */
#ifdef LIMIT_TWO_ABSENCES
#define sighted(r) (ver[r] != UNKNOWN)
#else
#define sighted(r) (ver[r] != UNKNOWN && !blind[r])
#endif

/*
 * What an operator does to a term that has not sealed the document yet is outside
 * the claim: a restore always, a deletion if the replicas have different ttls.
 */
#ifdef LIMIT_UNSEALED
#define mayRestore true
#else
#define mayRestore (store == ABSENT || kind[store] == RELEASE || isSealed)
#endif
#ifdef MIXED
#define mayDelete mayRestore
#else
#define mayDelete true
#endif

/*
 * LIVE: from some moment on nothing fails. Then requests are answered, and no
 * tick comes while somebody has something to do; each replica sends one request a
 * tick, a poll or a renewal.
 */
#ifdef LIVE
#ifndef SLACK
#define SLACK 1
#endif
#define WITHIN     (TTL+SLACK)	/* ticks until one leads and all others follow */
#define CALM       calm
#define up(r)      (down != r)
#define moved()    if :: calm -> moves++; assert(moves < 60) :: else fi
#define mayAsk(r)  (!calm || !polled[r])
#define ask(r)     polled[r] = calm
#define again(r)   polled[r] = false
#define untried(r) !tried[r]
#define rehearses(r) (calm -> looks(r) : !known[r])
#ifdef TELLS
#define looks(r)   (ver[r] == ABSENT && !looked[r])
#else
#define looks(r)   false
#endif
#define busy(r) (up(r) && (op[r] != IDLE \
	|| ph[r] == STANDBY && (!polled[r] || stood(r, 0) || tombstone(r) && untried(r) || looks(r)) \
	|| ph[r] == LEADING && (age[r] >= stopAt(r) || !acting[r] || age[r] > 0 && !polled[r]) \
	|| ph[r] == RELEASING && !polled[r]))
#define follows(r) (!up(r) || ph[r] == STANDBY)
#define heads(r)   (ph[r] == LEADING && acting[r])
#if N == 2
#define quiet (!busy(0) && !busy(1))
#define settledDown (heads(0) && follows(1) || heads(1) && follows(0))
#else
#define quiet (!busy(0) && !busy(1) && !busy(2))
#define settledDown (heads(0) && follows(1) && follows(2) || heads(1) && follows(0) && follows(2) || heads(2) && follows(0) && follows(1))
#endif
#else
#define CALM       false
#define up(r)      true
#define moved()    skip
#define mayAsk(r)  true
#define ask(r)     skip
#define again(r)   skip
#define untried(r) true
#define rehearses(r) !known[r]
#endif
