package statecmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// foreignWindow is how long a lease that is not in our format has to stand
// unchanged, as in the election: its holder may be slow.
const foreignWindow = 60 * time.Second

// Flags are what every verb that writes takes.
type Flags struct {
	// Force writes though somebody may lead, and over what a verb would keep.
	Force bool
	// Wait watches a lease that is held until it is stale.
	Wait bool
	// DryRun does everything but write.
	DryRun bool
}

// State is what a read of a lease showed.
type State string

// The states of a lease.
const (
	Absent     State = "absent"
	Released   State = "released"
	Held       State = "held"
	Damaged    State = "damaged"    // something that is no lease record
	Unreadable State = "unreadable" // no answer, or none that says anything
)

// Sight is what is known of one lease. It was read after the document.
type Sight struct {
	// Lease names it; Identity is what a fence calls it.
	Lease, Identity string
	State           State
	// Record is the record of a held or released lease.
	Record coordinator.Record
	// Err says why a lease is damaged or unreadable.
	Err error
	// Unchanged is how long this command has watched it stand as it is.
	Unchanged time.Duration
	// Renewed: this command saw a held lease change and still be held.
	Renewed bool
	// TTL is what this configuration says.
	TTL time.Duration
	// Age is how long ago the record says it was renewed, for people.
	Age time.Duration
	// Hold is the hold in force, or nil; HoldLeft is what is left of it.
	Hold     *coordinator.Hold
	HoldLeft time.Duration
	// HoldErr says why it is not known whether there is a hold.
	HoldErr error
}

// Facts is what a decision rests on.
type Facts struct {
	// Object is the document, Fence what it carries.
	Object string
	Fence  checkpoint.Fence
	// Lease is the identity of the configured lease, "" without an election.
	Lease string
	// Stranger: the document is not the one of the configuration, so that none of
	// Leases is known to be the one that seals it.
	Stranger bool
	// Handover: the verb is about the fence itself, and the lease that sealed the
	// document is among Leases.
	Handover bool
	// Leases are the leases whose leader would write the document.
	Leases []Sight
	// Busy: a process holds the lock of the checkpoint file. Blocked: it is the
	// lock that every write needs.
	Busy    error
	Blocked bool
	// Owner says why a file that is written now could not be read by the work, or
	// is "".
	Owner string
}

// Step is what to do.
type Step int

// The steps.
const (
	Write Step = iota + 1
	Wait
	Refuse
)

// Verdict is the decision.
type Verdict struct {
	Step Step
	// Why explains a wait or a refusal.
	Why string
	// Forced is what Flags.Force passed over.
	Forced []string
}

// Judge decides whether the document may be written now.
func Judge(f Facts, flags Flags) Verdict {
	// 1. What no flag passes over: the write would only hang.
	if f.Blocked {
		return Verdict{Step: Refuse, Why: f.Busy.Error() + "; --force does not help here: that program keeps the document in memory and would write it back"}
	}
	var refusals, waits []string
	refuse := func(format string, args ...any) { refusals = append(refusals, fmt.Sprintf(format, args...)) }

	// 2. Whoever seals the document must be one of those that were looked at.
	switch sealed := f.Fence.Epoch > 0 || f.Fence.Lease != ""; {
	case f.Stranger && sealed:
		refuse("%s was sealed by epoch %d of the lease %s, and is not the document of this configuration, so that it is not known whether somebody uses it; give the configuration of that pair with --config, or --force", f.Object, f.Fence.Epoch, orNone(f.Fence.Lease))
	case !f.Stranger && !f.Handover && f.Fence.Lease != "" && f.Fence.Lease != f.Lease:
		refuse("%s belongs to the lease %s, this configuration's is %s; use the configuration of that pair, or, if it is gone for good, \"sf2loki-ha state adopt\"; or --force", f.Object, f.Fence.Lease, orNone(f.Lease))
	}
	// 3. Nobody may lead.
	if f.Busy != nil {
		refuse("%v; or --force", f.Busy)
	}
	for _, s := range f.Leases {
		fence := f.Fence
		if fence.Lease != "" && fence.Lease != s.Identity {
			fence = checkpoint.Fence{} // says nothing about this lease
		}
		step, why := s.judge(fence, flags)
		switch step {
		case Refuse:
			refuse("%s is in use: %s", f.Object, why)
		case Wait:
			waits = append(waits, why)
		}
	}
	// 4. What is written must be readable by the work.
	if f.Owner != "" {
		refuse("%s", f.Owner)
	}

	switch {
	case flags.Force:
		return Verdict{Step: Write, Forced: append(refusals, waits...)}
	case len(refusals) > 0:
		return Verdict{Step: Refuse, Why: refusals[0]}
	case len(waits) > 0:
		return Verdict{Step: Wait, Why: strings.Join(waits, "; ")}
	}
	return Verdict{Step: Write}
}

// judge decides what one lease says.
func (s Sight) judge(fence checkpoint.Fence, flags Flags) (Step, string) {
	switch s.State {
	case Unreadable:
		return Refuse, fmt.Sprintf("the lease %s cannot be read: %v; until it can be read somebody may lead; or --force", s.Lease, s.Err)
	case Released:
		// One that is older than the seal was put back; its holder of today may work.
		if s.Record.Epoch >= fence.Epoch {
			return Write, ""
		}
	case Absent:
		// Never sealed, no lease: nobody has led yet.
		if fence.Epoch == 0 {
			return Write, ""
		}
	}
	window := s.window(fence)
	if s.Unchanged >= window {
		return Write, "" // stale by our own watch
	}
	what := s.describe(fence)
	if s.Hold != nil {
		return Wait, fmt.Sprintf("%s; hold %q by %s, %v left: waiting until it is released, or stands unchanged for %v",
			what, s.Hold.Reason, orNone(s.Hold.By), s.HoldLeft.Round(time.Second), window)
	}
	if flags.Wait && !s.Renewed {
		return Wait, fmt.Sprintf("%s; watching whether it stands unchanged for %v", what, window)
	}
	if s.Renewed {
		what += ", and it was renewed while this command watched"
	}
	text := what + "; its holder would write its own values back, or lose its work to the write. " +
		"Hold the pair (sf2loki-ha lease hold), run this command again, which waits for the release, and take the hold back; "
	if s.HoldErr != nil {
		text = what + fmt.Sprintf("; whether it is on hold cannot be read: %v; ", s.HoldErr)
	}
	if !s.Renewed {
		text += fmt.Sprintf("or, if its holder is dead, --wait (goes on once the lease stood unchanged for %v); ", window)
	}
	return Refuse, text + "or --force"
}

// window is how long the lease has to stand unchanged, as for a standby.
func (s Sight) window(fence checkpoint.Fence) time.Duration {
	w := max(s.TTL, s.Record.TTL, fence.TTL)
	if s.State == Damaged || s.State == Held && s.Record.Foreign() {
		w = max(w, foreignWindow)
	}
	return w
}

// describe names the state of a lease that is not known to be free.
func (s Sight) describe(fence checkpoint.Fence) string {
	switch s.State {
	case Absent:
		return fmt.Sprintf("the lease %s does not exist, but the document was sealed by epoch %d: it was deleted, and its holder may still work", s.Lease, fence.Epoch)
	case Released:
		return fmt.Sprintf("the lease %s was released at epoch %d, but the document was sealed by epoch %d: an older copy of the lease was put back, and its holder may still work", s.Lease, s.Record.Epoch, fence.Epoch)
	case Damaged:
		return fmt.Sprintf("the lease %s is no lease record (%v), so that its holder is not known", s.Lease, s.Err)
	}
	text := fmt.Sprintf("the lease %s is held by %q, epoch %d", s.Lease, s.Record.Holder, s.Record.Epoch)
	if !s.Record.RenewedAt.IsZero() {
		text += fmt.Sprintf(", renewed %v ago by the two machines' clocks", s.Age.Round(100*time.Millisecond))
	}
	if !s.Record.ExpiresAt.IsZero() {
		// For people: no decision reads it.
		text += ", expires_at " + s.Record.ExpiresAt.Format(time.RFC3339)
	}
	return text
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}
