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

// loadNotOlder: a version with older data is the dangerous pair. A standby that
// sees "released" beside the version of somebody's claim would overwrite the
// claim, and the condition would hold. The other pair is harmless: who replaces
// on a version older than the data gets a Conflict.
func loadNotOlder(t *testing.T, s *suite) {
	loadDuringWrites(t, s, func(data, version int) bool { return data >= version })
}

func loadIsOneWrite(t *testing.T, s *suite) {
	loadDuringWrites(t, s, func(data, version int) bool { return data == version })
}

// loadDuringWrites reads while another client writes, and lets ok judge each pair
// of data and version by the numbers of the writes they come from. It goes on
// until every reader has seen the object change a few times, so that reads and
// writes did overlap.
func loadDuringWrites(t *testing.T, s *suite, ok func(data, version int) bool) {
	const readers, writes, changes = 4, 40, 5
	ctx := bounded(t)
	key := s.fresh()
	w := s.bucket(t).Register(key)
	first := doc("0")
	v := mustCreate(t, w, first)
	byVersion, byData := map[cas.Version]int{v: 0}, map[string]int{string(first): 0}

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
		byVersion[v], byData[string(data)] = i+1, i+1
	}
	close(stop)
	wg.Wait()
	if !overlapped() {
		t.Error("readers did not see the object change: nothing was checked")
	}
	for i := range seen {
		for _, got := range seen[i] {
			data, known := byData[string(got.Data)]
			version, given := byVersion[got.Version]
			if !known || !given {
				t.Fatalf("version %q with %s was never written", got.Version, brief(got.Data))
			}
			if !ok(data, version) {
				t.Fatalf("data of write %d was loaded with the version of write %d", data, version)
			}
		}
	}
}
