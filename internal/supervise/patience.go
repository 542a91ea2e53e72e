package supervise

import (
	"log/slog"
	"time"
)

// patience paces a wait without limit and says at rising intervals that it
// goes on.
type patience struct {
	log   *slog.Logger
	what  string
	args  []any
	begin time.Time
	say   time.Duration // after this long
	every time.Duration
	timer *time.Timer
}

func newPatience(log *slog.Logger, what string, args ...any) *patience {
	p := &patience{log: log, what: what, args: args, begin: time.Now(), say: time.Second, every: time.Millisecond}
	p.timer = time.NewTimer(p.every)
	return p
}

func (p *patience) stop() { p.timer.Stop() }

// next is the next moment to look again.
func (p *patience) next() <-chan time.Time {
	const longest = 50 * time.Millisecond
	if waited := time.Since(p.begin); waited >= p.say {
		p.log.Warn(p.what, append([]any{"waited", waited.Round(time.Second)}, p.args...)...)
		p.say = min(2*p.say, p.say+time.Minute)
	}
	p.timer.Reset(p.every)
	p.every = min(2*p.every, longest)
	return p.timer.C
}

func (p *patience) pause() { <-p.next() }
