package redistest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// gaveUp wraps an error after which poll stops trying.
type gaveUp struct{ error }

func (g gaveUp) Unwrap() error { return g.error }

// poll calls ready at once and then every few milliseconds until it returns
// nil, and otherwise returns the last reason why not. Each call gets a
// second at most, so that one lost reply does not use up the time.
func poll(ctx context.Context, timeout time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		try, stop := context.WithTimeout(ctx, callTimeout)
		err := ready(try)
		stop()
		if err == nil {
			return nil
		}
		if g, ok := errors.AsType[gaveUp](err); ok {
			return g.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", timeout, err)
		case <-tick.C:
		}
	}
}
