package e2e

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// slack is the time from the acquisition to the first act of the canary: seal
// and start of the work, on a busy machine; on GCS the work starts 1 s after
// its seal.
const slack = 2 * time.Second

func backends() map[string]func(*testing.T) backend {
	return map[string]func(*testing.T) backend{"s3": s3Backend, "gcs": gcsBackend, "file": fileBackend, "k8s": k8sBackend}
}

func TestAKilledLeaderIsReplacedWithinTheBound(t *testing.T) {
	for name, open := range backends() {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			p := newPair(t, b)
			killed := time.Now()
			if err := p.leader.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if !p.leader.Wait(2 * time.Second) {
				t.Error("the work of a killed supervisor still lives after 2 s")
			}
			p.successor(t, 30*time.Second)
			if took := time.Since(killed); took > b.budget.Failover+slack {
				t.Errorf("takeover after %v, bound %v", took, b.budget.Failover)
			}
			if rec := b.record(t); rec.Epoch != p.epoch+1 || rec.Holder != p.standby.Name {
				t.Errorf("record: holder %q at epoch %d; want %q at %d", rec.Holder, rec.Epoch, p.standby.Name, p.epoch+1)
			}
			if got, err := p.standby.Metric("sf2loki_leader"); err != nil || got != "1" {
				t.Errorf("sf2loki_leader of the survivor: %q, %v", got, err)
			}
			p.sound(t)
		})
	}
}

func TestExactlyOneReplicaOfAPairReportsToLead(t *testing.T) {
	p := newPair(t, s3Backend(t))
	a, errA := p.leader.Metric("sf2loki_leader")
	b, errB := p.standby.Metric("sf2loki_leader")
	if err := errors.Join(errA, errB); err != nil || a != "1" || b != "0" {
		t.Errorf("sf2loki_leader %q and %q, %v; want 1 and 0", a, b, err)
	}
	for _, r := range []string{"/healthz", "/health"} {
		if code, body := get(t, p.standby.Addr, r); code != 200 || body != "ok" {
			t.Errorf("%s of the standby: %d %q", r, code, body)
		}
	}
	for _, r := range []string{"/readyz", "/ready"} {
		if code, body := get(t, p.standby.Addr, r); code != 503 || body != "standby" {
			t.Errorf("%s of the standby: %d %q", r, code, body)
		}
		if code, body := get(t, p.leader.Addr, r); code != 200 || body != "ready" {
			t.Errorf("%s of the leader: %d %q", r, code, body)
		}
	}
}

func TestAStoppedLeaderHandsOverWithinAboutOnePoll(t *testing.T) {
	for name, open := range backends() {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			p := newPair(t, b)
			stopped := time.Now()
			if err := p.leader.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.successor(t, 30*time.Second)
			limit := time.Second + slack
			if name == "gcs" {
				limit += 2 * time.Second // one write of an object in a second: stopping, then released
			}
			if took := time.Since(stopped); took > limit {
				t.Errorf("handover after %v, limit %v", took, limit)
			}
			if !p.leader.Wait(5*time.Second) || p.leader.ExitCode() != 0 {
				t.Errorf("the stopped replica ended with status %d", p.leader.ExitCode())
			}
			rec := b.record(t)
			if rec.Epoch != p.epoch+1 || len(rec.History) == 0 || rec.History[len(rec.History)-1].Reason != "shutdown" {
				t.Errorf("epoch %d, history %+v; want the stop in the history", rec.Epoch, rec.History)
			}
			p.sound(t)
		})
	}
}

func TestTheLastReplicaLeavesATombstoneAndTheNextOneClaimsItAtOnce(t *testing.T) {
	b := s3Backend(t)
	p := newPair(t, b)
	for _, r := range []int{0, 1} {
		leader := []interface {
			Signal(syscall.Signal) error
			Wait(time.Duration) bool
		}{p.standby, p.leader}[r]
		if err := leader.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if !leader.Wait(10 * time.Second) {
			t.Fatal("did not end")
		}
	}
	if rec := b.record(t); rec.State != coordinator.Released {
		t.Fatalf("state %q, want released", rec.State)
	}
	begun := time.Now()
	start(t, p.Cluster, "C")
	p.successor(t, 30*time.Second)
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("a restart after a clean stop took %v; the tombstone and the checkpoint document agree, so nobody has to wait", took)
	}
	p.sound(t)
}
