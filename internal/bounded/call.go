package bounded

import "context"

// Call runs f on its own goroutine and returns what f returns, or the error of
// ctx as soon as ctx ends. f gets a context that ends when Call returns, so an
// abandoned f is told to stop and its goroutine ends as soon as it listens.
//
// It exists because a client library that promises to honour a context does not
// always do so (a token exchange behind a mutex, a Close that waits for an
// answer), and a renewal that does not return is how a lease is lost silently.
//
// f must not touch memory that the caller reuses after Call has returned.
func Call[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err // nothing is sent for a caller that has gone already
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()

	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1) // one slot: an abandoned f never blocks here
	go func() {
		v, err := f(inner)
		done <- result{v, err}
	}()

	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err // an answer that raced with the end is still an answer
	default:
		return zero, ctx.Err()
	}
}
