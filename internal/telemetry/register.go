package telemetry

import (
	"context"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
)

// Values of the op label.
const (
	opLoad    = "load"
	opCreate  = "create"
	opReplace = "replace"
	opRequest = "request" // reads and writes of the request object
)

// Instrument returns reg with every request counted and timed.
func (m *Metrics) Instrument(reg cas.Register) cas.Register {
	return &register{Register: reg, metrics: m}
}

type register struct {
	cas.Register
	metrics *Metrics
}

func (r *register) Load(ctx context.Context) (cas.Value, error) {
	start := time.Now()
	v, err := r.Register.Load(ctx)
	r.metrics.request(opLoad, start, err)
	return v, err
}

func (r *register) Create(ctx context.Context, data []byte) (cas.Version, error) {
	start := time.Now()
	v, err := r.Register.Create(ctx, data)
	r.metrics.request(opCreate, start, err)
	return v, err
}

func (r *register) Replace(ctx context.Context, data []byte, old cas.Version) (cas.Version, error) {
	start := time.Now()
	v, err := r.Register.Replace(ctx, data, old)
	r.metrics.request(opReplace, start, err)
	return v, err
}

func (m *Metrics) request(op string, start time.Time, err error) {
	class := cas.ClassOf(err)
	m.StoreRequest(op, class, time.Since(start))
	if op != opLoad && err != nil && !class.Definite() {
		m.Ambiguous()
	}
}
