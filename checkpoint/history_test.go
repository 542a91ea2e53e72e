package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// TestRandomHistories lets leaders replace each other while the old one goes
// on, as a frozen process does, on a store that refuses, loses answers and
// applies writes late. Whatever happens:
//
//   - after a seal is confirmed, no write of an older term lands (I3);
//   - a value that was acknowledged is never moved back (I6);
//   - the epoch in the document never goes back (I2);
//   - once the faults stop, the last leader commits.
//
// The seed fixes the faults, the scheduler the rest.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { runHistory(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// history records what landed in the store, in order.
type history struct {
	cas.Register
	mu     sync.Mutex
	landed []landing
	// sealed is the highest epoch whose seal was confirmed, at that length of
	// landed.
	sealed int64
	after  int
}

type landing struct {
	epoch int64
	value int
}

func (h *history) Create(ctx context.Context, data []byte) (cas.Version, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, err := h.Register.Create(ctx, data)
	h.note(data, err)
	return v, err
}

func (h *history) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, err := h.Register.Replace(ctx, data, old)
	h.note(data, err)
	return v, err
}

func (h *history) note(data []byte, err error) {
	if err != nil {
		return
	}
	d, _ := checkpoint.ParseDocument(data)
	f, _ := d.Fence()
	text, _ := d.Get("n")
	n, _ := strconv.Atoi(text)
	if text == "done" {
		n = math.MaxInt
	}
	h.landed = append(h.landed, landing{epoch: f.Epoch, value: n})
}

func (h *history) confirmed(epoch int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch > h.sealed {
		h.sealed, h.after = epoch, len(h.landed)
	}
}

func runHistory(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	gaps := rand.New(rand.NewPCG(seed, 11))
	var planMu sync.Mutex
	faulty := true
	plan := func(op faultcas.Op, _ int) faultcas.Fault {
		planMu.Lock()
		defer planMu.Unlock()
		f := faultcas.Fault{Delay: time.Duration(1+rng.IntN(40)) * time.Millisecond}
		if !faulty {
			return f
		}
		switch rng.IntN(10) {
		case 0:
			f.Refuse = cas.Ambiguous
		case 1:
			f.Refuse = cas.Contended
		case 2:
			f.Lose = cas.Ambiguous
		case 3:
			f.Late = time.Duration(rng.IntN(200)) * time.Millisecond
		case 4:
			if op != faultcas.Load {
				return faultcas.Fault{LandLater: time.Duration(1+rng.IntN(800)) * time.Millisecond}
			}
		case 5:
			f.NoVersion = op != faultcas.Load
		}
		return f
	}
	h := &history{Register: newObject(nil).plain}
	open := func() *checkpoint.Store {
		return checkpoint.Open(faultcas.Wrap(h, plan), checkpoint.WithLease(leaseName, time.Second), checkpoint.WithCallTimeout(150*time.Millisecond))
	}

	var ackMu sync.Mutex
	acknowledged := 0
	var wg sync.WaitGroup
	for epoch := int64(1); epoch <= 4; epoch++ {
		wg.Go(func() {
			tm := &term{epoch: epoch, id: fmt.Sprintf("t%d", epoch)}
			var s *checkpoint.Session
			for s == nil {
				var err error
				if s, err = open().Seal(t.Context(), tm); err != nil {
					var fenced *checkpoint.FencedError
					if errors.As(err, &fenced) {
						return
					}
				}
			}
			h.confirmed(epoch)
			// It works until it is fenced, however long it has been replaced.
			text, _ := s.Get("n")
			n, _ := strconv.Atoi(text)
			for range 40 {
				err := s.Commit(t.Context(), map[string]string{"n": strconv.Itoa(n + 1)})
				var fenced *checkpoint.FencedError
				switch {
				case err == nil:
					n++
					ackMu.Lock()
					acknowledged = max(acknowledged, n)
					ackMu.Unlock()
				case errors.As(err, &fenced):
					if fenced.Epoch <= epoch {
						t.Errorf("epoch %d fenced by %d", epoch, fenced.Epoch)
					}
					return
				case cas.ClassOf(err) != cas.Ambiguous && cas.ClassOf(err) != cas.Contended && cas.ClassOf(err) != cas.Conflict:
					t.Errorf("epoch %d: %v", epoch, err)
					return
				}
			}
		})
		elapse(time.Duration(gaps.IntN(1500)) * time.Millisecond)
	}
	wg.Wait()
	planMu.Lock()
	faulty = false
	planMu.Unlock()
	// Everything that was on its way lands or fails.
	elapse(time.Second)

	last, err := open().Seal(t.Context(), &term{epoch: 5, id: "t5"})
	if err != nil {
		t.Fatalf("after the faults: %v", err)
	}
	text, _ := last.Get("n")
	if n, _ := strconv.Atoi(text); n < acknowledged {
		t.Errorf("%d was acknowledged, the document has %d", acknowledged, n)
	}
	if err := last.Commit(t.Context(), map[string]string{"n": "done"}); err != nil {
		t.Errorf("after the faults: %v", err)
	}
	for i, l := range h.landed {
		if i >= h.after && l.epoch < h.sealed {
			t.Errorf("write %d of epoch %d landed after the seal of epoch %d was confirmed", i, l.epoch, h.sealed)
		}
		if i > 0 && l.epoch < h.landed[i-1].epoch {
			t.Errorf("write %d: epoch went back from %d to %d", i, h.landed[i-1].epoch, l.epoch)
		}
		if i > 0 && l.value < h.landed[i-1].value {
			t.Errorf("write %d: value went back from %d to %d", i, h.landed[i-1].value, l.value)
		}
	}
}
