package guard

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sf2loki/sf2loki-ha/internal/boottime"
)

// tick is the longest time between two looks at the clock and at the parent.
const tick = 100 * time.Millisecond

// guard is the state of the loop. Only the loop's goroutine touches it.
type guard struct {
	parent int
	wake   bell
	timer  alarm
	fork   chan struct{}   // asks the main thread to start the child
	forked chan forkResult // its answer

	orders Decoder[Order]
	rule   Rule

	forking bool
	early   map[int]unix.WaitStatus // reaped while forking, pid of the child unknown
	child   int                     // 0: none
	reaped  bool                    // the child has been reaped, status is set
	status  unix.WaitStatus

	hurried bool // this thread goes before others; nice is what it had
	nice    int
}

// run returns when the tree is gone.
func (g *guard) run() {
	for !g.fired() {
		g.step()
	}
	g.clear()
	if g.reaped {
		g.report(exitReport(g.status))
	}
	reason, _ := g.rule.Fired()
	g.report(Report{Type: ReportGone, Reason: reason})
}

func (g *guard) fired() bool {
	_, fired := g.rule.Fired()
	return fired
}

// step waits for something to happen and acts on it.
func (g *guard) step() {
	pause := tick
	if at := g.rule.Until(); at != boottime.Never {
		pause = min(pause, at.Sub(boottime.Now()))
	}
	wait(pause, ControlFD, g.timer.fd, g.wake.fd)
	g.wake.silence()

	// 1. The clock first. An order that was written in time but is read too
	//    late, because this process was frozen, must not extend anything.
	if g.expired() {
		return
	}
	// 2. A supervisor that is dead is usually seen as the end of the pipe. If
	//    somebody else holds its end open, our parent has changed.
	if os.Getppid() != g.parent {
		g.fire(ReasonEOF)
		return
	}
	// 3. The child.
	g.takeFork()
	if !g.forking {
		g.reap()
	}
	if g.reaped && !g.fired() {
		g.fire(ReasonExited)
	}
	// 4. Orders.
	if !g.fired() {
		g.listen()
	}
}

// expired begins the end if the instant has come.
func (g *guard) expired() bool {
	if !g.rule.Look(boottime.Now()) {
		return false
	}
	g.fire(ReasonDeadline)
	return true
}

// listen reads and obeys what the supervisor wrote.
func (g *guard) listen() {
	buf := make([]byte, maxMessage)
	n, ok := readSome(ControlFD, buf)
	if !ok {
		g.fire(ReasonEOF)
		return
	}
	orders, err := g.orders.Feed(buf[:n])
	if err != nil {
		// Somebody who writes nonsense may mean "stop" as well as "go on".
		g.fire(ReasonEOF)
		return
	}
	for _, order := range orders {
		if g.fired() {
			return
		}
		g.obey(order)
	}
}

func (g *guard) obey(o Order) {
	switch o.Type {
	case OrderDeadline:
		g.deadline(o)
	case OrderSignal:
		g.signal(unix.Signal(o.Signal))
	case OrderKill:
		g.fire(ReasonKill)
	}
}

// deadline puts an instant in force: see [Rule.Deadline].
func (g *guard) deadline(o Order) {
	acknowledge, first := g.rule.Deadline(o, boottime.Now())
	if reason, fired := g.rule.Fired(); fired {
		g.fire(reason)
		return
	}
	if err := g.timer.set(o.At); err != nil {
		g.fire(ReasonEOF)
		return
	}
	// Setting the timer took time.
	if g.expired() || !acknowledge {
		return
	}
	g.report(Report{Type: ReportAck, Seq: o.Seq})
	// Only now is there anything to guard.
	if first {
		g.forking = true
		g.early = make(map[int]unix.WaitStatus)
		g.fork <- struct{}{}
	}
}

// signal passes a signal to the child's process group. A child that has moved
// to another group gets it alone.
func (g *guard) signal(sig unix.Signal) {
	if g.child == 0 || g.reaped {
		return
	}
	if err := unix.Kill(-g.child, sig); errors.Is(err, unix.ESRCH) {
		_ = unix.Kill(g.child, sig)
	}
}

// takeFork takes the answer of the main thread, if there is one.
func (g *guard) takeFork() {
	select {
	case res := <-g.forked:
		g.forking = false
		if res.err != nil {
			g.report(Report{Type: ReportStartFailed, Error: res.err.Error()})
			if !g.fired() {
				g.fire(ReasonStartFailed)
			}
			return
		}
		g.child = res.pid
		g.report(Report{Type: ReportStarted, PID: res.pid})
		if status, ok := g.early[res.pid]; ok {
			g.reaped, g.status = true, status
		}
		g.early = nil
	default:
	}
}

// report writes one report. Nothing is waited for.
func (g *guard) report(r Report) {
	line, err := r.Encode()
	if err != nil {
		panic(err) // a report that this package cannot encode is a mistake in it
	}
	writeAll(StatusFD, line)
}

func exitReport(status unix.WaitStatus) Report {
	if status.Signaled() {
		return Report{Type: ReportExited, Signal: int(status.Signal())}
	}
	return Report{Type: ReportExited, Code: status.ExitStatus()}
}
