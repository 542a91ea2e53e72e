package statecmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/file"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

func (u user) fence(t *testing.T) checkpoint.Fence {
	t.Helper()
	f, err := checkpoint.Open(file.New(u.path)).Fence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sealAs is a seal by a replica of that lease.
func (u user) sealAs(t *testing.T, lease string, epoch int64) (*checkpoint.Session, error) {
	t.Helper()
	return checkpoint.Open(file.New(u.path), checkpoint.WithLease(lease, 3*time.Second)).Seal(t.Context(), pair{epoch})
}

func TestARepairTakesTheEpochOfTheLeaseAndTheNextTermSeals(t *testing.T) {
	u := paired(t)
	const text = `{"a": "1", "__fence_epoch__": "junk", "b": "2"}`
	u.write(t, text)
	u.holds(t, coordinator.Released, 9)
	if _, err := u.sealAs(t, u.lease, 10); cas.ClassOf(err) != cas.Corrupt || !strings.Contains(err.Error(), "repair-fence") {
		t.Fatalf("%v", err)
	}
	out, errs, err := u.do(t, Flags{DryRun: true}, false, repair(0))
	if err != nil || !strings.Contains(out, "would write the fence of "+u.path+": epoch 9, lease "+u.lease) || u.content(t) != text {
		t.Fatalf("%v, %q, %q", err, out, errs)
	}
	out, errs, err = u.do(t, Flags{}, false, repair(0))
	if err != nil || !strings.Contains(out, "wrote the fence of "+u.path+": epoch 9, lease "+u.lease) || !strings.Contains(errs, "not a decimal number") {
		t.Fatalf("%v, %q, %q", err, out, errs)
	}
	if f := u.fence(t); f.Epoch != 9 || f.Lease != u.lease || f.TTL != 3*time.Second || f.Term == "" {
		t.Errorf("%+v", f)
	}
	session, err := u.sealAs(t, u.lease, 10)
	if err != nil || strings.Join(session.Keys(), " ") != "a b" {
		t.Errorf("%v", err)
	}
	// Sound now: nothing to do, and nothing lower.
	before := u.content(t)
	if out := u.must(t, repair(0)); !strings.Contains(out, "nothing to repair") {
		t.Errorf("%q", out)
	}
	if _, _, err := u.do(t, Flags{Force: true}, false, repair(9)); err == nil || !strings.Contains(err.Error(), "never goes back") || u.content(t) != before {
		t.Errorf("%v", err)
	}
}

func TestARepairWithoutAnyEpochAsksForOne(t *testing.T) {
	u := paired(t)
	const text = `{"a": "1", "__fence__": "junk"}`
	u.write(t, text)
	_, _, err := u.do(t, Flags{}, false, repair(0))
	if err == nil || !strings.Contains(err.Error(), "--epoch N") || !strings.Contains(err.Error(), "sf2loki_ha_epoch") || u.content(t) != text {
		t.Errorf("%v", err)
	}
	if _, _, err := u.do(t, Flags{}, false, repair(40)); err != nil || u.fence(t).Epoch != 40 {
		t.Errorf("%v", err)
	}
	none := alone(t)
	if _, _, err := none.do(t, Flags{}, false, repair(3)); err == nil || !strings.Contains(err.Error(), "does not exist") || none.content(t) != "" {
		t.Errorf("%v", err)
	}
	none.write(t, text)
	var bad *UsageError
	if _, _, err := none.do(t, Flags{}, false, repair(checkpoint.MaxEpoch+1)); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
	if _, _, err := none.do(t, Flags{}, false, repair(3)); err != nil || none.fence(t).Epoch != 3 || none.fence(t).Lease != "" {
		t.Errorf("%v, %+v", err, none.fence(t))
	}
}

func TestAdoptingLooksAtTheLeaseThatSealed(t *testing.T) {
	old, u := paired(t), paired(t)
	session, err := u.sealAs(t, old.lease, 40)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, session, "a", "1")
	before := u.content(t)

	// 1. Other verbs name the way out.
	if _, _, err := u.do(t, Flags{}, false, set("a", "2")); err == nil || !strings.Contains(err.Error(), old.lease) || !strings.Contains(err.Error(), "state adopt") {
		t.Errorf("set: %v", err)
	}
	// 2. While the old pair lives it is refused, and a hold of the new pair does not
	// count for it.
	old.holds(t, coordinator.Held, 40)
	for _, flags := range []Flags{{}, {DryRun: true}} {
		if _, _, err := u.do(t, flags, false, adopt); err == nil || !strings.Contains(err.Error(), old.lease+" is held") {
			t.Errorf("%v", err)
		}
	}
	if u.content(t) != before {
		t.Fatal("written")
	}
	// 3. Released, it is handed over.
	old.holds(t, coordinator.Released, 40)
	out := u.must(t, adopt)
	if !strings.Contains(out, "epoch 40, lease "+u.lease) || !strings.Contains(out, "adopted from the lease "+old.lease) {
		t.Errorf("%q", out)
	}
	if f := u.fence(t); f.Epoch != 40 || f.Lease != u.lease {
		t.Errorf("%+v", f)
	}
	if err := session.Commit(t.Context(), map[string]string{"a": "9"}); err == nil {
		t.Error("the old leader commits")
	}
	if _, err := u.sealAs(t, u.lease, 41); err != nil {
		t.Error(err)
	}
	// 4. Again: nothing to do.
	if out := u.must(t, adopt); !strings.Contains(out, "nothing to adopt") {
		t.Errorf("%q", out)
	}
}

func TestALeaseThatCannotBeReachedIsAdoptedByForceAlone(t *testing.T) {
	for name, lease := range map[string]string{
		"a directory that is not here": filepath.Join(t.TempDir(), "gone", "leader.lease"),
		"a name of something else":     "who knows",
	} {
		t.Run(name, func(t *testing.T) {
			u := paired(t)
			if _, err := u.sealAs(t, lease, 40); err != nil {
				t.Fatal(err)
			}
			before := u.content(t)
			if _, _, err := u.do(t, Flags{Wait: true}, false, adopt); err == nil || !strings.Contains(err.Error(), "the lease "+lease+" cannot be read") || u.content(t) != before {
				t.Errorf("%v", err)
			}
			if _, errs, err := u.do(t, Flags{Force: true}, false, adopt); err != nil || !strings.Contains(errs, "--force: ") || u.fence(t).Lease != u.lease {
				t.Errorf("%v, %q", err, errs)
			}
		})
	}
}

func TestALeaseThatWasDeletedIsWatchedBeforeItsDocumentIsAdopted(t *testing.T) {
	old, u := paired(t), paired(t)
	if _, err := u.sealAs(t, old.lease, 40); err != nil {
		t.Fatal(err)
	}
	if _, _, err := u.do(t, Flags{}, false, adopt); err == nil || !strings.Contains(err.Error(), "does not exist, but the document was sealed by epoch 40") {
		t.Errorf("%v", err)
	}
	begun := time.Now()
	if _, _, err := u.do(t, Flags{Wait: true}, false, adopt); err != nil || time.Since(begun) < 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

func TestWithoutAnElectionADocumentIsAdoptedForNobody(t *testing.T) {
	old, u := paired(t), alone(t)
	if _, err := u.sealAs(t, old.lease, 40); err != nil {
		t.Fatal(err)
	}
	old.holds(t, coordinator.Released, 41)
	if out := u.must(t, adopt); !strings.Contains(out, "epoch 40, lease (none)") {
		t.Errorf("%q", out)
	}
	if _, err := u.sealAs(t, "", 41); err != nil {
		t.Error(err)
	}
}

// A fence that says another lease keeps saying so after a repair.
func TestARepairIsNoAdoption(t *testing.T) {
	old, u := paired(t), paired(t)
	u.write(t, `{"a": "1", "__fence_epoch__": "junk", "__fence__": "{\"term\":\"t\",\"lease\":\"`+old.lease+`\",\"ttl_ms\":3000}"}`)
	old.holds(t, coordinator.Held, 12)
	if _, _, err := u.do(t, Flags{}, false, repair(0)); err == nil || !strings.Contains(err.Error(), old.lease+" is held") {
		t.Errorf("%v", err)
	}
	old.holds(t, coordinator.Released, 12)
	u.must(t, repair(0))
	if f := u.fence(t); f.Epoch != 12 || f.Lease != old.lease {
		t.Errorf("%+v", f)
	}
}

func TestATruncatedLeaseDoesNotStopARepair(t *testing.T) {
	u := paired(t)
	u.write(t, `{"a": "1", "__fence_epoch__": "7", "__fence__": "junk"}`)
	if err := os.WriteFile(u.lease, []byte(`{"holder"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := u.do(t, Flags{}, false, repair(0)); err == nil || !strings.Contains(err.Error(), "no lease record") {
		t.Errorf("%v", err)
	}
	if _, _, err := u.do(t, Flags{Force: true}, false, repair(0)); err != nil || u.fence(t).Epoch != 7 {
		t.Errorf("%v", err)
	}
}

func TestOurOwnLeaseIsWatchedOnce(t *testing.T) {
	d := newWorld().document()
	d.watchSealer(context.Background(), ours)
	if len(d.leases) != 1 {
		t.Errorf("%d leases", len(d.leases))
	}
}
