package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/boottime"
	"github.com/sf2loki/sf2loki-ha/internal/guard"
)

const (
	// tick is the longest time between two looks at the clock.
	tick = 100 * time.Millisecond
	// startPatience is how long the first acknowledgement may take: an
	// executable has to be loaded first. No command runs yet, so nothing but
	// time is at stake; KillAt bounds it as well.
	startPatience = 5 * time.Second
	// lossPatience is how long the guard may take to begin to kill after a
	// loss, before we kill as well. Somebody else may act already.
	lossPatience = 50 * time.Millisecond
)

// run is one run of the command. Only the goroutine of Run touches it.
type run struct {
	cfg   Config
	lease Lease
	log   *slog.Logger
	guard *guardProcess

	seq     uint64
	at      boottime.Instant // the last instant that was sent
	pending []pendingAck     // sent and not acknowledged, oldest first

	pid       int
	startedAt boottime.Instant

	stopping  bool // the context ended
	cause     error
	stoppedAt boottime.Instant
	stopBy    boottime.Instant // when grace ends; Never: at the instant
	hurried   int              // how often somebody asked for less

	killing  bool             // the end has begun, by order, by the guard or by the clock
	answers  bool             // the guard is known to be killing, or was told to
	goneBy   boottime.Instant // when we take the kill over
	takeOver bool

	forced     bool
	asDeadline bool // the guard fired because its instant came
	exited     bool
	code       int
	signal     syscall.Signal
	gone       bool
	startErr   string
	failure    error // why the guard cannot be relied on
	sendErr    error

	looked boottime.Instant // the last look at the clock
}

type pendingAck struct {
	seq uint64
	by  boottime.Instant
}

// loop returns when the guard said that the tree is gone, or when the guard has
// failed.
func (r *run) loop(ctx context.Context) {
	r.looked, r.stopBy, r.goneBy = boottime.Now(), boottime.Never, boottime.Never
	changed := r.lease.Changed()
	r.hand(r.lease.KillAt())
	done := ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(r.pause())
		select {
		case report, ok := <-r.guard.reports:
			if !ok {
				r.fail(r.guard.lost())
			} else {
				r.take(report)
			}
		case <-done:
			done = nil
			r.stop(context.Cause(ctx))
		case sig := <-r.cfg.Signals:
			r.relay(sig)
		case <-changed:
			changed = r.lease.Changed()
			r.hand(r.lease.KillAt())
		case <-timer.C:
		}
		r.look()
		if r.gone || r.takeOver || r.failure != nil {
			return
		}
	}
}

// pause is the time until the next look at the clock.
func (r *run) pause() time.Duration {
	next := min(r.stopBy, r.goneBy)
	if len(r.pending) > 0 {
		next = min(next, r.pending[0].by)
	}
	if !r.killing {
		next = min(next, r.at)
	}
	return max(0, min(tick, next.Sub(boottime.Now())))
}

// look acts on what is due.
func (r *run) look() {
	now := boottime.Now()
	// 1. Time in which we stood still is not the guard's fault: its answers may
	//    be waiting unread. It has the instant, so waiting for it is safe.
	if still := now.Sub(r.looked) - tick; still > tick {
		for i := range r.pending {
			r.pending[i].by = r.pending[i].by.Add(still)
		}
		r.goneBy = r.goneBy.Add(still)
	}
	r.looked = now
	if r.gone || r.failure != nil {
		return
	}
	// 2. A guard that does not confirm an instant may be unable to hold one.
	if len(r.pending) > 0 && now >= r.pending[0].by {
		r.fail(fmt.Errorf("no acknowledgement of deadline %d", r.pending[0].seq))
		return
	}
	// 3. The grace is over.
	if !r.killing && now >= r.stopBy {
		r.forced = r.pid != 0
		r.kill(now.Add(r.cfg.KillMargin / 2))
	}
	// 4. The instant has come: the guard fires by itself.
	if !r.killing && now >= r.at {
		r.killing, r.goneBy = true, now.Add(r.cfg.KillMargin/2)
	}
	// 5. It should be gone by now. Only a guard that let its instant pass has
	//    failed; one that kills and is slow gets help.
	if r.killing && now >= r.goneBy {
		r.takeOver = true
		if !r.answers {
			r.fail(errors.New("the guard did not fire at its instant"))
		}
	}
}

// hand gives the guard an instant, if it is a new one.
func (r *run) hand(at boottime.Instant) {
	if r.killing || r.seq > 0 && at == r.at {
		return
	}
	now := boottime.Now()
	by := now.Add(r.cfg.KillMargin / 2)
	if r.seq == 0 {
		by = max(by, min(now.Add(startPatience), at))
	}
	r.seq++
	r.at = at
	r.pending = append(r.pending, pendingAck{r.seq, by})
	r.send(guard.Order{Type: guard.OrderDeadline, Seq: r.seq, At: at})
}

// stop begins the end of the run for a cause.
func (r *run) stop(cause error) {
	now := boottime.Now()
	r.stopping, r.cause, r.stoppedAt = true, cause, now
	// 1. Not ready first, whatever comes next.
	if r.cfg.Stopping != nil {
		r.cfg.Stopping(cause)
	}
	r.log.Info("work_stopping", "reason", cause, "pid", r.pid)
	if r.killing {
		return
	}
	switch {
	case errors.Is(cause, coordinator.ErrLost):
		// 2. Somebody else may act already: no grace.
		r.kill(now.Add(lossPatience))
	case r.pid == 0:
		// 3. What has not started has nothing to finish.
		r.kill(now.Add(r.cfg.KillMargin / 2))
	default:
		// 4. SIGTERM once, and time. A requested stop has all the time up to the
		//    instant, which the coordinator computes for it and moves.
		if !errors.Is(cause, coordinator.ErrStopping) {
			r.stopBy = now.Add(r.cfg.StopGrace)
		}
		r.send(guard.Order{Type: guard.OrderSignal, Signal: int(syscall.SIGTERM)})
	}
}

// relay passes a signal on, or lets a stop be over sooner.
func (r *run) relay(sig syscall.Signal) {
	switch {
	case r.killing:
	case sig != syscall.SIGTERM && sig != syscall.SIGINT:
		if r.pid != 0 {
			r.send(guard.Order{Type: guard.OrderSignal, Signal: int(sig)})
		}
	case r.stopping:
		by := boottime.Now()
		if r.hurried == 0 {
			by = by.Add(r.cfg.StopGrace)
		}
		r.hurried++
		r.stopBy = min(r.stopBy, by)
		r.log.Info("work_hurried", "pid", r.pid, "left", max(0, min(r.stopBy, r.at).Sub(boottime.Now())))
	}
}

// kill orders the guard to kill the tree and to be done by an instant.
func (r *run) kill(by boottime.Instant) {
	r.killing, r.answers, r.goneBy = true, true, by
	r.pending = nil
	r.send(guard.Order{Type: guard.OrderKill})
}

// take notes one report of the guard.
func (r *run) take(report guard.Report) {
	now := boottime.Now()
	switch report.Type {
	case guard.ReportAck:
		for len(r.pending) > 0 && r.pending[0].seq <= report.Seq {
			r.pending = r.pending[1:]
		}
	case guard.ReportStarted:
		r.pid, r.startedAt = report.PID, now
		r.log.Info("work_started", "pid", r.pid)
		if r.cfg.Started != nil && !r.killing {
			r.cfg.Started(r.pid)
		}
	case guard.ReportStartFailed:
		r.startErr = report.Error
	case guard.ReportFiring:
		// It answers no order any more.
		r.pending = nil
		// It is at it: time to finish, also after a loss.
		r.goneBy = now.Add(r.cfg.KillMargin / 2)
		r.killing, r.answers = true, true
		switch report.Reason {
		case guard.ReasonDeadline:
			r.asDeadline = true
		case guard.ReasonExited:
			// Nothing hurries the descendants but the instant.
			r.goneBy = max(r.goneBy, min(r.at, now.Add(startPatience)))
		case guard.ReasonEOF:
			r.fail(errors.New("the guard could not read its orders"))
		}
	case guard.ReportExited:
		r.exited, r.code, r.signal = true, report.Code, syscall.Signal(report.Signal)
	case guard.ReportGone:
		r.gone = true
	}
}

// fail gives the guard up. The first failure stands.
func (r *run) fail(err error) {
	if r.failure != nil || r.gone {
		return
	}
	if r.sendErr != nil {
		err = fmt.Errorf("%w (%w)", err, r.sendErr)
	}
	r.failure = err
}

// send writes an order. An error is not acted upon here: an order that did not
// arrive is not answered, and a missing answer ends the run anyway, while the
// reports of a guard that has just finished still wait to be read.
func (r *run) send(o guard.Order) {
	if err := r.guard.send(o); err != nil && r.sendErr == nil {
		r.sendErr = err
	}
}
