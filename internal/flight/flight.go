// Package flight has one of several callers that want the same ask for it, and the others wait for that.
package flight

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/singleflight"
)

// A Group has the questions that are under way. The zero Group is ready, and safe for concurrent use.
type Group struct{ asked singleflight.Group }

// Do has one of the callers with a key that come at once ask. The error is the question's, or that of this caller's context: if one
// caller gives up, the others still need the answer, so ask must not go by it.
func (g *Group) Do(ctx context.Context, key string, ask func() error) error {
	answered := g.asked.DoChan(key, func() (any, error) { return nil, ask() })
	select {
	case r := <-answered:
		return r.Err
	case <-ctx.Done():
		return Ended(ctx)
	}
}

// Ended returns the error of a context that has ended, with its cause if that is another.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
