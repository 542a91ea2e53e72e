package castest_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/castest"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
)

// mutants are broken stores, each with the check that has to notice it.
var mutants = map[string]struct {
	caughtBy string
	mutate   func(cas.Register) cas.Register
}{
	"create ignores its condition": {
		"create_on_an_existing_object",
		func(r cas.Register) cas.Register { return mutant{Register: r, create: overwrite(r)} },
	},
	"replace ignores its condition": {
		"replace_on_a_stale_version",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, replace: func(ctx context.Context, data []byte, _ cas.Version) (cas.Version, error) {
				return overwrite(r)(ctx, data)
			}}
		},
	},
	"replace creates an absent object": {
		"replace_on_an_absent_object",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, replace: func(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
				if _, err := r.Load(ctx); cas.ClassOf(err) == cas.NotFound {
					return r.Create(ctx, data)
				}
				return r.Replace(ctx, data, old)
			}}
		},
	},
	"an empty version is no condition": {
		"replace_on_a_version_no_store_gives",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, replace: func(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
				if old == "" {
					return overwrite(r)(ctx, data)
				}
				return r.Replace(ctx, data, old)
			}}
		},
	},
	"create checks, then writes": {
		"one_of_64_creators_wins",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, create: func(ctx context.Context, data []byte) (cas.Version, error) {
				if _, err := r.Load(ctx); err == nil {
					return r.Create(ctx, data)
				}
				creators.meet()
				return overwrite(r)(ctx, data)
			}}
		},
	},
	"replace checks, then writes": {
		"one_of_64_replacers_wins",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, replace: func(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
				if v, err := r.Load(ctx); err != nil || v.Version != old {
					return r.Replace(ctx, data, old)
				}
				replacers.meet()
				return overwrite(r)(ctx, data)
			}}
		},
	},
	"version comes from a second read": {
		"load_never_pairs_a_version_with_older_data",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, load: func(ctx context.Context) (cas.Value, error) {
				v, err := r.Load(ctx)
				if err != nil {
					return v, err
				}
				again := v
				for i := 0; i < 1e5 && again.Version == v.Version; i++ { // until the writer has written
					if again, err = r.Load(ctx); err != nil {
						return again, err
					}
					runtime.Gosched()
				}
				return cas.Value{Data: v.Data, Version: again.Version}, nil
			}}
		},
	},
	"data comes from a second read": {
		"load_never_mixes_two_writes",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, load: func(ctx context.Context) (cas.Value, error) {
				v, err := r.Load(ctx)
				if err != nil {
					return v, err
				}
				again := v
				for i := 0; i < 1e5 && again.Version == v.Version; i++ {
					if again, err = r.Load(ctx); err != nil {
						return again, err
					}
					runtime.Gosched()
				}
				return cas.Value{Data: again.Data, Version: v.Version}, nil
			}}
		},
	},
	"an empty object is absent": {
		"data_comes_back_byte_for_byte",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, load: func(ctx context.Context) (cas.Value, error) {
				v, err := r.Load(ctx)
				if err == nil && len(v.Data) == 0 {
					return cas.Value{}, &cas.Error{Class: cas.NotFound, Op: "load", Object: r.Describe()}
				}
				return v, err
			}}
		},
	},
	"an age is negative": {
		"age_is_what_passed",
		func(r cas.Register) cas.Register {
			return ageing(r, func(age time.Duration) time.Duration { return age - time.Millisecond })
		},
	},
	"an age counts from an earlier write": {
		"age_is_what_passed",
		func(r cas.Register) cas.Register {
			return ageing(r, func(age time.Duration) time.Duration { return age + time.Minute })
		},
	},
	"an age shrinks": {
		"age_is_what_passed",
		func(r cas.Register) cas.Register {
			left := 4 * time.Second
			return ageing(r, func(time.Duration) time.Duration { left = max(0, left-2*time.Second); return left })
		},
	},
	"an age stands still": {
		"age_grows",
		func(r cas.Register) cas.Register {
			return ageing(r, func(time.Duration) time.Duration { return time.Second })
		},
	},
	"an age does not start again": {
		"age_grows",
		func(r cas.Register) cas.Register {
			begun := time.Now()
			return ageing(r, func(time.Duration) time.Duration { return time.Since(begun) })
		},
	},
	"the end of the context is ignored": {
		"ended_context_is_Ambiguous",
		func(r cas.Register) cas.Register {
			return mutant{Register: r, load: func(context.Context) (cas.Value, error) { return r.Load(context.Background()) }}
		},
	},
}

// ageing is a register that shows other ages.
func ageing(r cas.Register, other func(time.Duration) time.Duration) cas.Register {
	return mutant{Register: r, load: func(ctx context.Context) (cas.Value, error) {
		v, err := r.Load(ctx)
		v.Age = other(v.Age)
		return v, err
	}}
}

// meeting lets two callers that have both checked go on together, so that the
// race of a store that checks and then writes happens in every run.
type meeting struct {
	arrived atomic.Int32
	open    chan struct{}
}

func (m *meeting) meet() {
	if m.arrived.Add(1) == 2 {
		close(m.open)
	}
	<-m.open
}

var creators, replacers = meeting{open: make(chan struct{})}, meeting{open: make(chan struct{})}

// mutant is a register with some methods replaced.
type mutant struct {
	cas.Register
	load    func(context.Context) (cas.Value, error)
	create  func(context.Context, []byte) (cas.Version, error)
	replace func(context.Context, []byte, cas.Version) (cas.Version, error)
}

func (m mutant) Load(ctx context.Context) (cas.Value, error) {
	if m.load != nil {
		return m.load(ctx)
	}
	return m.Register.Load(ctx)
}

func (m mutant) Create(ctx context.Context, data []byte) (cas.Version, error) {
	if m.create != nil {
		return m.create(ctx, data)
	}
	return m.Register.Create(ctx, data)
}

func (m mutant) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	if m.replace != nil {
		return m.replace(ctx, data, old)
	}
	return m.Register.Replace(ctx, data, old)
}

// overwrite is the unconditional write that package cas does not have.
func overwrite(r cas.Register) func(context.Context, []byte) (cas.Version, error) {
	return func(ctx context.Context, data []byte) (cas.Version, error) {
		for {
			v, err := r.Load(ctx)
			var next cas.Version
			if cas.ClassOf(err) == cas.NotFound {
				next, err = r.Create(ctx, data)
			} else if err == nil {
				next, err = r.Replace(ctx, data, v.Version)
			}
			if cas.ClassOf(err) != cas.Conflict {
				return next, err
			}
		}
	}
}

type mutantBucket struct {
	cas.Bucket
	mutate func(cas.Register) cas.Register
}

func (b mutantBucket) Register(name string) cas.Register { return b.mutate(b.Bucket.Register(name)) }

const mutantEnv = "SF2LOKI_HA_CASTEST_MUTANT"

// TestMutant runs the suite on the mutant that TestSuiteCatchesBrokenStores
// names in the environment of a child process; alone it runs the sound store.
// The child runs only the check that has to fail.
func TestMutant(t *testing.T) {
	store := mem.New()
	m, broken := mutants[os.Getenv(mutantEnv)]
	open := func(*testing.T) cas.Bucket {
		if !broken {
			return store.Open()
		}
		return mutantBucket{Bucket: store.Open(), mutate: m.mutate}
	}
	castest.Run(t, open)
	castest.Exact(t, open)
	castest.Ages(t, open)
}

func TestSuiteCatchesBrokenStores(t *testing.T) {
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutant$/^"+m.caughtBy, "-test.v")
			cmd.Env = append(os.Environ(), mutantEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatal("the suite passes on this store")
			}
			if !strings.Contains(string(out), "--- FAIL: TestMutant/"+m.caughtBy) {
				t.Errorf("not caught by %q:\n%s", m.caughtBy, out)
			}
		})
	}
}
