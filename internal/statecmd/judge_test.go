package statecmd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

const (
	ours   = "s3://b/sf2loki/leader.lease"
	theirs = "s3://b/other.lease"
	object = "s3://b/sf2loki/state.json"
)

func record(state coordinator.State, epoch int64) coordinator.Record {
	return coordinator.Record{
		Holder: "A", Epoch: epoch, Incarnation: "i", Term: "t", TTL: 15 * time.Second, State: state, Version: 1,
		RenewedAt: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), ExpiresAt: time.Date(2026, 7, 1, 12, 0, 15, 0, time.UTC),
	}
}

func sight(state State, epoch int64, change ...func(*Sight)) Sight {
	s := Sight{Lease: ours, Identity: ours, State: state, TTL: 15 * time.Second}
	switch state {
	case Held:
		s.Record, s.Age = record(coordinator.Held, epoch), 3*time.Second
	case Released:
		s.Record = record(coordinator.Released, epoch)
	case Damaged, Unreadable:
		s.Err = errors.New("why not")
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func unchanged(d time.Duration) func(*Sight) { return func(s *Sight) { s.Unchanged = d } }
func other(s *Sight)                         { s.Lease, s.Identity = theirs, theirs }
func renewed(s *Sight)                       { s.Renewed = true }
func onHold(s *Sight) {
	s.Hold, s.HoldLeft = &coordinator.Hold{ID: "h", Reason: "repair", By: "anna", For: time.Hour}, 10*time.Minute
}
func foreign(s *Sight) {
	s.Record = coordinator.Record{Holder: "host-7", Epoch: s.Record.Epoch, ExpiresAt: s.Record.ExpiresAt}
}

func TestNothingIsWrittenWhileSomebodyMayLead(t *testing.T) {
	sealed := checkpoint.Fence{Epoch: 7, Term: "t", Lease: ours, TTL: 20 * time.Second, Found: true}
	busy := errors.New("busy")
	for name, c := range map[string]struct {
		fence  checkpoint.Fence
		leases []Sight
		facts  func(*Facts)
		flags  Flags
		step   Step
		says   []string // in Why, or in what was forced
	}{
		"no election, no lock":             {sealed, nil, func(f *Facts) { f.Lease, f.Fence.Lease = "", "" }, Flags{}, Write, nil},
		"no election, locked":              {sealed, nil, func(f *Facts) { f.Lease, f.Fence.Lease, f.Busy = "", "", busy }, Flags{}, Refuse, []string{"busy", "--force"}},
		"no election, locked, forced":      {sealed, nil, func(f *Facts) { f.Lease, f.Fence.Lease, f.Busy = "", "", busy }, Flags{Force: true}, Write, []string{"busy"}},
		"the lock of writes itself":        {sealed, nil, func(f *Facts) { f.Lease, f.Fence.Lease, f.Busy, f.Blocked = "", "", busy, true }, Flags{Force: true}, Refuse, []string{"busy", "does not help"}},
		"released":                         {sealed, []Sight{sight(Released, 7)}, nil, Flags{}, Write, nil},
		"released later":                   {sealed, []Sight{sight(Released, 9)}, nil, Flags{}, Write, nil},
		"released, older than the seal":    {sealed, []Sight{sight(Released, 6)}, nil, Flags{}, Refuse, []string{"older copy", "epoch 6", "epoch 7", "--wait"}},
		"the same, watched":                {sealed, []Sight{sight(Released, 6, unchanged(20*time.Second))}, nil, Flags{}, Write, nil},
		"no lease, never sealed":           {checkpoint.Fence{Found: true}, []Sight{sight(Absent, 0)}, nil, Flags{}, Write, nil},
		"no lease, no document":            {checkpoint.Fence{}, []Sight{sight(Absent, 0)}, nil, Flags{}, Write, nil},
		"no lease, sealed":                 {sealed, []Sight{sight(Absent, 0)}, nil, Flags{}, Refuse, []string{"does not exist", "epoch 7", "--wait", "20s", "--force"}},
		"no lease, sealed, wait":           {sealed, []Sight{sight(Absent, 0, unchanged(19*time.Second))}, nil, Flags{Wait: true}, Wait, []string{"20s"}},
		"no lease, sealed, watched":        {sealed, []Sight{sight(Absent, 0, unchanged(20*time.Second))}, nil, Flags{Wait: true}, Write, nil},
		"held":                             {sealed, []Sight{sight(Held, 7)}, nil, Flags{}, Refuse, []string{`held by "A"`, "epoch 7", "renewed 3s ago", "expires_at 2026-07-01T12:00:15Z", "Hold the pair", "--wait", "--force", object}},
		"held, long expired by its stamps": {sealed, []Sight{sight(Held, 7, func(s *Sight) { s.Age = 90 * 24 * time.Hour })}, nil, Flags{}, Refuse, []string{"held by"}},
		"held, never sealed":               {checkpoint.Fence{}, []Sight{sight(Held, 7)}, nil, Flags{}, Refuse, []string{"held by"}},
		"held, forced":                     {sealed, []Sight{sight(Held, 7)}, nil, Flags{Force: true}, Write, []string{`held by "A"`}},
		"held, wait":                       {sealed, []Sight{sight(Held, 7, unchanged(19*time.Second))}, nil, Flags{Wait: true}, Wait, []string{"unchanged for 20s"}},
		"held, stale by our watch":         {sealed, []Sight{sight(Held, 7, unchanged(20*time.Second))}, nil, Flags{Wait: true}, Write, nil},
		"held, renewed while we watched":   {sealed, []Sight{sight(Held, 7, renewed)}, nil, Flags{Wait: true}, Refuse, []string{"renewed while this command watched"}},
		"renewed, then dead":               {sealed, []Sight{sight(Held, 7, renewed, unchanged(20*time.Second))}, nil, Flags{Wait: true}, Write, nil},
		"held with a longer ttl":           {sealed, []Sight{sight(Held, 7, unchanged(30*time.Second), func(s *Sight) { s.Record.TTL = time.Minute })}, nil, Flags{Wait: true}, Wait, []string{"1m0s"}},
		"held on hold":                     {sealed, []Sight{sight(Held, 7, onHold)}, nil, Flags{}, Wait, []string{`hold "repair" by anna`, "10m0s left"}},
		"held on hold, renewed":            {sealed, []Sight{sight(Held, 7, onHold, renewed)}, nil, Flags{}, Wait, nil},
		"held on hold, stale":              {sealed, []Sight{sight(Held, 7, onHold, unchanged(20*time.Second))}, nil, Flags{}, Write, nil},
		"held on hold, forced":             {sealed, []Sight{sight(Held, 7, onHold)}, nil, Flags{Force: true}, Write, []string{"hold"}},
		"held, the hold is not known":      {sealed, []Sight{sight(Held, 7, func(s *Sight) { s.HoldErr = errors.New("denied") })}, nil, Flags{}, Refuse, []string{"on hold cannot be read: denied"}},
		"held by upstream":                 {sealed, []Sight{sight(Held, 7, foreign, unchanged(59*time.Second))}, nil, Flags{Wait: true}, Wait, []string{"host-7", "1m0s"}},
		"held by upstream, stale":          {sealed, []Sight{sight(Held, 7, foreign, unchanged(time.Minute))}, nil, Flags{Wait: true}, Write, nil},
		"a damaged lease":                  {sealed, []Sight{sight(Damaged, 0)}, nil, Flags{}, Refuse, []string{"no lease record", "why not", "1m0s"}},
		"a damaged lease, watched":         {sealed, []Sight{sight(Damaged, 0, unchanged(time.Minute))}, nil, Flags{Wait: true}, Write, nil},
		"an unreadable lease":              {sealed, []Sight{sight(Unreadable, 0)}, nil, Flags{Wait: true}, Refuse, []string{"cannot be read: why not", "--force"}},
		"an unreadable lease, forced":      {sealed, []Sight{sight(Unreadable, 0)}, nil, Flags{Force: true}, Write, []string{"why not"}},
		"another lease's document":         {sealed, []Sight{sight(Released, 9)}, func(f *Facts) { f.Fence.Lease = theirs }, Flags{}, Refuse, []string{theirs, ours, "adopt"}},
		"the same without an election":     {sealed, nil, func(f *Facts) { f.Lease = "" }, Flags{}, Refuse, []string{ours, "(none)", "adopt"}},
		"adopting it":                      {sealed, []Sight{sight(Absent, 0), sight(Released, 9, other)}, func(f *Facts) { f.Fence.Lease, f.Handover = theirs, true }, Flags{}, Write, nil},
		"adopting it, its pair lives":      {sealed, []Sight{sight(Released, 3), sight(Held, 9, other)}, func(f *Facts) { f.Fence.Lease, f.Handover = theirs, true }, Flags{}, Refuse, []string{"held by"}},
		"adopting it, out of reach":        {sealed, []Sight{sight(Released, 9), sight(Unreadable, 0, other)}, func(f *Facts) { f.Fence.Lease, f.Handover = theirs, true }, Flags{}, Refuse, []string{"cannot be read"}},
		"adopting it, its lease is older":  {sealed, []Sight{sight(Absent, 0), sight(Released, 6, other)}, func(f *Facts) { f.Fence.Lease, f.Handover = theirs, true }, Flags{}, Refuse, []string{"older copy", theirs}},
		"adopting it, its lease is gone":   {sealed, []Sight{sight(Absent, 0), sight(Absent, 0, other)}, func(f *Facts) { f.Fence.Lease, f.Handover = theirs, true }, Flags{}, Refuse, []string{"does not exist", theirs}},
		"two to wait for":                  {sealed, []Sight{sight(Held, 9), sight(Held, 9, other)}, func(f *Facts) { f.Fence.Lease, f.Handover = theirs, true }, Flags{Wait: true}, Wait, nil},
		"a stranger, never sealed":         {checkpoint.Fence{Found: true}, nil, func(f *Facts) { f.Stranger = true }, Flags{}, Write, nil},
		"a stranger, sealed":               {sealed, nil, func(f *Facts) { f.Stranger = true }, Flags{}, Refuse, []string{"sealed by epoch 7", ours, "--config"}},
		"a stranger, sealed by upstream":   {checkpoint.Fence{Epoch: 2, Found: true}, nil, func(f *Facts) { f.Stranger = true }, Flags{}, Refuse, []string{"sealed by epoch 2"}},
		"a file of another user":           {sealed, []Sight{sight(Released, 9)}, func(f *Facts) { f.Owner = "belongs to uid 10001" }, Flags{}, Refuse, []string{"10001"}},
		"a file of another user, forced":   {sealed, []Sight{sight(Released, 9)}, func(f *Facts) { f.Owner = "belongs to uid 10001" }, Flags{Force: true}, Write, []string{"10001"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Object: object, Fence: c.fence, Lease: ours, Leases: c.leases}
			if c.facts != nil {
				c.facts(&f)
			}
			v := Judge(f, c.flags)
			if v.Step != c.step {
				t.Errorf("step %d (%s), want %d", v.Step, v.Why, c.step)
			}
			text := v.Why + strings.Join(v.Forced, "\n")
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("does not say %q: %s", want, text)
				}
			}
			if c.step == Write && len(c.says) == 0 && text != "" {
				t.Errorf("passed over something: %s", text)
			}
			if strings.Contains(text, "\n\n") || strings.Contains(text, "%!") {
				t.Errorf("%q", text)
			}
		})
	}
}

func TestARepairedEpochIsTheHighestThatIsKnownAndNeverLower(t *testing.T) {
	held := func(epoch int64) []Sight { return []Sight{sight(Held, epoch)} }
	for name, c := range map[string]struct {
		found, damaged bool
		readable       int64
		leases         []Sight
		wanted, epoch  int64
		says           string // of the error
	}{
		"no document":                          {false, false, 0, nil, 0, 0, "does not exist"},
		"sound, nothing wanted":                {true, false, 7, held(9), 0, 0, ""},
		"sound, the same wanted":               {true, false, 7, held(7), 7, 0, ""},
		"sound, lower wanted":                  {true, false, 7, held(7), 6, 0, "never goes back"},
		"sound, higher wanted":                 {true, false, 7, held(7), 12, 12, ""},
		"sound, higher, but below the lease":   {true, false, 7, held(9), 8, 0, "9, which the lease " + ours},
		"damaged, epoch readable":              {true, true, 7, nil, 0, 7, ""},
		"damaged, the lease is higher":         {true, true, 7, held(9), 0, 9, ""},
		"damaged, the lease is lower":          {true, true, 7, held(3), 0, 7, ""},
		"damaged, only the lease tells":        {true, true, 0, held(3), 0, 3, ""},
		"damaged, a tombstone tells":           {true, true, 0, []Sight{sight(Released, 4)}, 0, 4, ""},
		"damaged, the higher of two leases":    {true, true, 0, append(held(3), held(5)...), 0, 5, ""},
		"damaged, nobody tells":                {true, true, 0, []Sight{sight(Absent, 0), sight(Damaged, 0), sight(Unreadable, 0)}, 0, 0, "sf2loki_ha_epoch"},
		"damaged, nobody tells, wanted":        {true, true, 0, []Sight{sight(Absent, 0)}, 5, 5, ""},
		"damaged, wanted below the document":   {true, true, 7, nil, 6, 0, "7, which " + object},
		"damaged, wanted below the lease":      {true, true, 0, held(9), 8, 0, "never goes back"},
		"damaged, wanted above both":           {true, true, 7, held(9), 10, 10, ""},
		"larger than an epoch can be":          {true, true, 0, nil, checkpoint.MaxEpoch + 1, 0, "between 1"},
		"negative":                             {true, true, 0, nil, -1, 0, "between 1"},
		"the largest one":                      {true, true, 0, nil, checkpoint.MaxEpoch, checkpoint.MaxEpoch, ""},
		"no document, though wanted":           {false, false, 0, nil, 5, 0, "does not exist"},
		"never sealed, an epoch to begin with": {true, false, 0, nil, 5, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			epoch, err := repairPlan(object, c.found, c.damaged, c.readable, c.leases, c.wanted)
			if epoch != c.epoch || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d, %v; want %d, %q", epoch, err, c.epoch, c.says)
			}
		})
	}
}
