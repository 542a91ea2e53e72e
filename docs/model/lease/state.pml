/* What there is: the bounds, the object, the replicas. */

#ifndef N
#define N 2			/* replicas */
#endif
#ifndef TTL
#define TTL 3			/* ticks */
#endif
#ifndef EPOCHS
#define EPOCHS 2		/* the highest epoch that is claimed before faults stop */
#endif
#ifndef LATE
#define LATE 1			/* writes of one process that it gave up and that may yet land */
#endif
#ifndef CRASHES
#define CRASHES 0		/* a process dies and a fresh one takes its place */
#endif
#ifndef DELETES
#define DELETES 0		/* an operator deletes the lease */
#endif
#ifndef RESTORES
#define RESTORES 0		/* an operator puts an old tombstone back */
#endif
#ifndef IDS
#define IDS (3*N+1)		/* writes that anybody can tell apart at one time; asserted in send */
#endif
#ifndef WITNESS
#define WITNESS 0
#endif

#if defined(MUT_OBSERVER_FROM_SEND)
#define SLOWREAD
#endif

/* A seal can tell two absences apart, if there are two. */
#if defined(DOC) && DELETES > 0
#define TELLS
#endif

#if defined(LIVE) && TTL < 3
#error "a renewal needs a tick between the landing and the stop instant"
#endif
#if defined(LIVE) && defined(MIXED)
#error "a fence that makes the window longer is tried again for ever"
#endif

/* ph, what a replica is */
#define STANDBY   0
#define LEADING   1		/* its work starts, runs or drains */
#define RELEASING 2		/* its work is gone, the lease is not given back yet */
/* kind, what a write says */
#define FREE    0
#define ACQUIRE 1
#define RENEW   2
#define RELEASE 3
/* net, where a write is */
#define SETTLED 0
#define FLYING  1		/* under way to the store */
#define LANDED  2		/* applied, the answer is under way */
#define REFUSED 3		/* refused, the answer is under way */
/* op, what a replica waits for */
#define IDLE  0
#define SENT  1			/* a read that the store has not seen */
#define READ  2			/* the answer of a read */
#define FENCE 3			/* the fence of the document is in its hand */
#define WRITE 4			/* the answer of a write */

/* A version is the id of the write that made it, as an ETag is. */
#define ABSENT  0
#define UNKNOWN (IDS+1)

#define NOBODY   255
#define FORMERLY 254		/* a process that is no more */

/* A write, from its send until nobody can tell it from others any more. */
byte kind[IDS+1], net[IDS+1];
byte owner[IDS+1];		/* the incarnation in the record */
byte epoch[IDS+1];
byte cond[IDS+1];		/* the version it was sent on */
byte since[IDS+1];		/* ticks of its sender's clock since before the send */
bool doubt[IDS+1];		/* its sender got no definite answer */

byte store = ABSENT;		/* what the lease object holds */
byte docEpoch, docBy;		/* the fence of the checkpoint document; 0: not found */

/* A replica. */
byte ph[N];
byte ver[N];			/* standby: the version last seen. holder: last confirmed */
byte age[N];			/* standby: of that sighting. holder: of the write that counts */
bool acting[N];			/* its work runs */
bool quest[N];			/* a conflict met doubt: read before anything else */
byte doubts[N];			/* attempts on one condition without an answer; 2: or more */
bool doubtAbsent[N];		/* that condition was absence */
byte op[N];			/* the one request in flight */
byte opVal[N];			/* what it brought, or the id of the write */
byte epMax[N];			/* the highest epoch that this process saw */
byte held[N], heldBy[N];	/* the held record with the highest epoch that it saw */
byte inc[N];			/* restarts */
#ifdef MIXED
bool sawLong[N];		/* it knows of the longer of the two ttls */
#endif
#ifdef SLOWREAD
byte asked[N];			/* ticks since the read was sent */
#endif
#ifdef MUT_SETTLE_AS_LATEST
byte latest[N];			/* ticks since the last write was sent */
#endif
#ifdef DOC
bool sealed[N];			/* the document is; the work has not started */
#endif
#ifdef TELLS
bool known[N];			/* the fence that it read last is the document's */
bool news[N];			/* the fence in its hand is a seal that it did not know of */
#endif
#ifdef DRIFT
byte steady;			/* ticks for which no clock may lose one */
#endif

byte crashes = CRASHES, deletes = DELETES, restores = RESTORES;

/* Only for judging. */
byte highest;			/* the highest epoch that landed */
bool touched;			/* an operator wrote the object */
bool blind[N];			/* it takes two absences for one, and no seal tells */
#if RESTORES > 0
byte tomb[EPOCHS+3];		/* who released that epoch, plus 1 */
#endif

#ifdef LIVE
bool calm;			/* faults have stopped */
byte calmTicks;
byte moves;			/* steps since the last tick */
bool polled[N];			/* its request of this tick was sent */
#ifdef TELLS
bool looked[N];			/* it has read the fence since it saw absence */
#endif
bool tried[N];			/* this tombstone was tried at once */
byte down = NOBODY;		/* a replica that does not come back */
#endif

byte i, j, k;			/* scratch; 0 between steps */

#define me(r)      (r + N*inc[r])
#define ourTerm(r) (store != ABSENT && owner[store] == me(r) && epoch[store] == epoch[ver[r]])
/* The sender still waits for the answer of this write. */
#define waiting(id) (owner[id] < FORMERLY && op[owner[id] % N] == WRITE && opVal[owner[id] % N] == id && inc[owner[id] % N] == owner[id] / N)
/* id is an attempt of r that had no answer. */
#define settles(r, id) (id != ABSENT && doubt[id] && owner[id] == me(r))
#define tombstone(r)   (ver[r] != ABSENT && ver[r] != UNKNOWN && kind[ver[r]] == RELEASE)

/* witness(w) is violated if the search is for the situation w, to show that it occurs. */
#define witness(w) assert(WITNESS != w)
#define CLAIM_SETTLED_BY_READ    1
#define RENEWAL_SETTLED_BY_READ  2
#define RELEASE_SETTLED_BY_READ  3
#define LOST_BY_READ             4
#define LOST_BY_CLEAN_CONFLICT   5
#define TOMBSTONE_CLAIMED        6
#define LATE_WRITE_LANDS         7
#define LAST_EPOCH_ACTS          8
#define TOMBSTONE_DISTRUSTED     9
#define SEAL_REFUSED            10
#define ABSENCE_COUNTS_ANEW     11
