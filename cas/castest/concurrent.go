package castest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
)

const (
	writers = 64
	clients = 8 // separately opened buckets the writers are spread over
	rounds  = 5
)

// race lets all writers run attempt at once, each on one of several clients, and
// returns the number of the one that succeeded. Every other one must have failed
// with Conflict or Contended.
func race(t *testing.T, regs []cas.Register, attempt func(i int, r cas.Register) error) int {
	t.Helper()
	var (
		start = make(chan struct{})
		wg    sync.WaitGroup
		errs  [writers]error
	)
	for i := range writers {
		wg.Go(func() {
			<-start
			errs[i] = attempt(i, regs[i%len(regs)])
		})
	}
	close(start)
	wg.Wait()
	winner, wins := -1, 0
	for i, err := range errs {
		switch cas.ClassOf(err) {
		case "":
			winner = i
			wins++
		case cas.Conflict, cas.Contended:
		default:
			t.Errorf("writer %d: %v, want conflict or contended", i, err)
		}
	}
	if wins != 1 {
		t.Fatalf("%d of %d concurrent writers succeeded, want exactly 1", wins, writers)
	}
	return winner
}

func (s *suite) clients(t *testing.T, key string) []cas.Register {
	regs := make([]cas.Register, clients)
	for i := range regs {
		regs[i] = s.bucket(t).Register(key)
	}
	return regs
}

func oneCreatorWins(t *testing.T, s *suite) {
	ctx := bounded(t)
	for range rounds {
		regs := s.clients(t, s.fresh())
		var docs [writers][]byte
		var versions [writers]cas.Version
		for i := range docs {
			docs[i] = doc(fmt.Sprint("creator ", i))
		}
		w := race(t, regs, func(i int, r cas.Register) (err error) {
			versions[i], err = r.Create(ctx, docs[i])
			return err
		})
		holds(t, regs[0], docs[w], versions[w])
	}
}

func oneReplacerWins(t *testing.T, s *suite) {
	ctx := bounded(t)
	regs := s.clients(t, s.fresh())
	v := mustCreate(t, regs[0], doc("start"))
	for range rounds {
		var docs [writers][]byte
		var versions [writers]cas.Version
		for i := range docs {
			docs[i] = doc(fmt.Sprint("replacer ", i))
		}
		w := race(t, regs, func(i int, r cas.Register) (err error) {
			versions[i], err = r.Replace(ctx, docs[i], v)
			return err
		})
		v = versions[w]
		holds(t, regs[0], docs[w], v)
	}
}

// loadIsOneWrite reads while another client writes and checks each pair of data
// and version against what the writer wrote. It goes on until every reader has
// seen the object change a few times, so that reads and writes did overlap.
func loadIsOneWrite(t *testing.T, s *suite) {
	const readers, writes, changes = 4, 40, 5
	ctx := bounded(t)
	key := s.fresh()
	w := s.bucket(t).Register(key)
	first := doc("0")
	v := mustCreate(t, w, first)
	written := map[cas.Version]string{v: string(first)}

	var (
		wg   sync.WaitGroup
		stop = make(chan struct{})
		seen [readers][]cas.Value // at each change
		n    [readers]atomic.Int32
	)
	for i := range readers {
		r := s.bucket(t).Register(key)
		wg.Go(func() {
			var last cas.Version
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := r.Load(ctx)
				if err != nil {
					t.Errorf("load during writes: %v", err)
					return
				}
				if got.Version != last {
					last = got.Version
					seen[i] = append(seen[i], got)
					n[i].Add(1)
				}
			}
		})
	}
	overlapped := func() bool {
		for i := range n {
			if n[i].Load() < changes {
				return false
			}
		}
		return true
	}
	for i := 0; (i < writes || !overlapped()) && ctx.Err() == nil && !t.Failed(); i++ {
		runtime.Gosched()
		data := doc(fmt.Sprint("write ", i+1))
		next, err := w.Replace(ctx, data, v)
		if err != nil {
			t.Errorf("replace: %v", err)
			break
		}
		v = next
		written[v] = string(data)
	}
	close(stop)
	wg.Wait()
	if !overlapped() {
		t.Error("readers did not see the object change: nothing was checked")
	}
	for i := range seen {
		for _, got := range seen[i] {
			if written[got.Version] != string(got.Data) {
				t.Fatalf("version %q was loaded with %s, written with %q", got.Version, brief(got.Data), written[got.Version])
			}
		}
	}
}
