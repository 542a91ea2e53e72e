package castest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
)

// verdicts are what the store probe says of the mutants of the suite. The suite
// looks for more than the probe: what two leaders need is a write that is
// accepted, so a store that only mixes up its reads passes here.
var verdicts = map[string]cas.StoreFault{
	"create ignores its condition":        cas.FaultNotEnforced,
	"replace ignores its condition":       cas.FaultNotEnforced,
	"replace creates an absent object":    cas.FaultNotEnforced,
	"an empty version is no condition":    cas.FaultNotEnforced,
	"create checks, then writes":          cas.FaultRaced,
	"replace checks, then writes":         cas.FaultRaced,
	"version comes from a second read":    "",
	"data comes from a second read":       "",
	"an empty object is absent":           "",
	"an age is negative":                  "",
	"an age counts from an earlier write": "",
	"an age shrinks":                      "",
	"an age stands still":                 "",
	"an age does not start again":         "",
	"the end of the context is ignored":   "",
}

// racing are the two mutants whose race has to happen in every run; those of the
// suite wait for each other, which a single writer would do for ever.
var racing = map[string]func(cas.Register) cas.Register{
	"create checks, then writes": func(r cas.Register) cas.Register {
		return mutant{Register: r, create: func(ctx context.Context, data []byte) (cas.Version, error) {
			if _, err := r.Load(ctx); err == nil {
				return r.Create(ctx, data)
			}
			<-time.After(time.Millisecond)
			return overwrite(r)(ctx, data)
		}}
	},
	"replace checks, then writes": func(r cas.Register) cas.Register {
		return mutant{Register: r, replace: func(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
			if v, err := r.Load(ctx); err != nil || v.Version != old {
				return r.Replace(ctx, data, old)
			}
			<-time.After(time.Millisecond)
			return overwrite(r)(ctx, data)
		}}
	},
}

// more are broken stores that the suite has no mutant of.
var more = map[string]struct {
	fault  cas.StoreFault
	mutate func(cas.Register) cas.Register
}{
	"quoted etags never match": {cas.FaultNeverMatches, func(r cas.Register) cas.Register {
		return mutant{Register: r, replace: func(context.Context, []byte, cas.Version) (cas.Version, error) {
			return "", &cas.Error{Class: cas.Conflict, Op: "replace", Object: r.Describe(), Status: 412}
		}}
	}},
	"every version is the same": {cas.FaultSameVersion, func(r cas.Register) cas.Register {
		one := func(v cas.Version, err error) (cas.Version, error) {
			if err == nil {
				v = `"1"`
			}
			return v, err
		}
		return mutant{Register: r,
			load: func(ctx context.Context) (cas.Value, error) {
				v, err := r.Load(ctx)
				if err == nil {
					v.Version = `"1"`
				}
				return v, err
			},
			create: func(ctx context.Context, data []byte) (cas.Version, error) { return one(r.Create(ctx, data)) },
			replace: func(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
				v, err := r.Load(ctx)
				if err == nil && old != `"1"` {
					v.Version = old
				}
				return one(r.Replace(ctx, data, v.Version))
			},
		}
	}},
	"no conditions at all": {cas.FaultNotEnforced, func(r cas.Register) cas.Register {
		return mutant{Register: r, create: overwrite(r),
			replace: func(ctx context.Context, data []byte, _ cas.Version) (cas.Version, error) {
				return overwrite(r)(ctx, data)
			}}
	}},
	"creates are conditional, replaces not implemented": {cas.FaultNotSupported, func(r cas.Register) cas.Register {
		return mutant{Register: r, replace: func(context.Context, []byte, cas.Version) (cas.Version, error) {
			return "", &cas.Error{Class: cas.Unsupported, Op: "replace", Object: r.Describe(), Status: 501, Code: "NotImplemented"}
		}}
	}},
	"an illegal create is answered 412 and applied": {cas.FaultNotEnforced, func(r cas.Register) cas.Register {
		return mutant{Register: r, create: func(ctx context.Context, data []byte) (cas.Version, error) {
			v, err := r.Create(ctx, data)
			if cas.ClassOf(err) == cas.Conflict {
				_, _ = overwrite(r)(ctx, data)
			}
			return v, err
		}}
	}},
}

// broken are all of them.
func broken(t *testing.T) (stores map[string]func(cas.Register) cas.Register, faults map[string]cas.StoreFault) {
	t.Helper()
	stores, faults = map[string]func(cas.Register) cas.Register{}, map[string]cas.StoreFault{}
	for name, m := range mutants {
		fault, ok := verdicts[name]
		if !ok {
			t.Errorf("no verdict for %q", name)
		}
		stores[name], faults[name] = m.mutate, fault
	}
	for name, mutate := range racing {
		stores[name] = mutate
	}
	for name, m := range more {
		stores[name], faults[name] = m.mutate, m.fault
	}
	return stores, faults
}

func probe(t *testing.T, mutate func(cas.Register) cas.Register, plan func(n int) faultcas.Fault) cas.ProbeReport {
	store := mem.New()
	n := make(chan int, 1)
	n <- 0
	return cas.Probe(t.Context(), cas.ProbeConfig{Object: "lease", CallTimeout: time.Second, Open: func(context.Context) (cas.Bucket, error) {
		return mutantBucket{Bucket: store.Open(), mutate: func(r cas.Register) cas.Register {
			return faultcas.Wrap(mutate(r), func(faultcas.Op, int) faultcas.Fault {
				i := <-n + 1
				n <- i
				return plan(i)
			})
		}}, nil
	}})
}

func TestTheProbeNamesTheFaultOfEveryBrokenStore(t *testing.T) {
	stores, faults := broken(t)
	for name, mutate := range stores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := probe(t, mutate, func(int) faultcas.Fault { return faultcas.Fault{} })
				want := cas.ProbeUnsupported
				if faults[name] == "" {
					want = cas.ProbeOK
				}
				if r.Verdict != want || r.Fault != faults[name] {
					t.Errorf("want %s %q:\n%s%v", want, faults[name], r, r.Err())
				}
				if want == cas.ProbeUnsupported && cas.ClassOf(r.Err()) != cas.Unsupported {
					t.Errorf("class of %v", r.Err())
				}
			})
		})
	}
}

func TestAHiddenAnswerNeverLetsABrokenStorePass(t *testing.T) {
	stores, faults := broken(t)
	for name, mutate := range stores {
		if faults[name] == "" {
			continue
		}
		for kind, fault := range map[string]faultcas.Fault{
			"applied, answer lost":      {Lose: cas.Ambiguous},
			"applied, answered 409":     {Lose: cas.Contended},
			"not applied, answer lost":  {Refuse: cas.Ambiguous},
			"not applied, answered 409": {Refuse: cas.Contended},
			"applied later":             {LandLater: 10 * time.Millisecond},
			"applied, no version":       {NoVersion: true},
			"denied":                    {Refuse: cas.Denied},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				for at := 1; at <= 40; at++ {
					synctest.Test(t, func(t *testing.T) {
						r := probe(t, mutate, func(n int) (f faultcas.Fault) {
							if n == at {
								f = fault
							}
							return f
						})
						if r.Verdict == cas.ProbeOK {
							t.Errorf("passes with call %d hidden:\n%s", at, r)
						}
						if r.Verdict == cas.ProbeUnsupported && r.Fault == "" {
							t.Errorf("no fault is named: %v", r.Err())
						}
					})
				}
			})
		}
	}
}

func Example_probe() {
	store := mem.New()
	r := cas.Probe(context.Background(), cas.ProbeConfig{
		Object: "leader.lease",
		Open: func(context.Context) (cas.Bucket, error) {
			return mutantBucket{store.Open(), more["quoted etags never match"].mutate}, nil
		},
	})
	fmt.Println(r.Verdict)
	fmt.Println(r.Fault)
	// Output:
	// unsupported
	// the current version never matches
}
