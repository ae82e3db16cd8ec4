package ration

import (
	"context"
	"fmt"
	"slices"

	"github.com/ration-go/ration/limit"
)

// requestOptions are what a context asks for. They are one value of the context, because
// every request looks for them.
type requestOptions struct {
	scopes     []string
	reserve    float64
	cost       int
	hasReserve bool
	hasCost    bool
}

type requestOptionsKey struct{}

// requestOptionsOf returns what the context asks for; nil: nothing.
func requestOptionsOf(ctx context.Context) *requestOptions {
	o, _ := ctx.Value(requestOptionsKey{}).(*requestOptions)
	return o
}

// withOption returns a context that asks for something more.
func withOption(ctx context.Context, set func(*requestOptions)) context.Context {
	var o requestOptions
	if parent := requestOptionsOf(ctx); parent != nil {
		o = *parent
	}
	set(&o)
	return context.WithValue(ctx, requestOptionsKey{}, &o)
}

// WithCost returns a context whose requests cost this many units when a [Transport] sends
// them. It replaces what [Transport.Cost] says.
func WithCost(ctx context.Context, units int) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.cost, o.hasCost = units, true })
}

// WithScopes returns a context whose requests have these scopes and no others. A limit
// with a Scope covers a request only if the request has that scope: a limit on uploads,
// say. A scope is 1 to 32 letters, digits, '-', '_' and '.'.
func WithScopes(ctx context.Context, scopes ...string) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.scopes = slices.Clone(scopes) })
}

// bookOptions are what a caller asks for beside its cost.
type bookOptions struct {
	scopes  []string
	reserve int // in thousandths
}

// bookOptions returns what the context asks for.
func (b *Budget) bookOptions(ctx context.Context) (options bookOptions, err error) {
	if b == nil {
		return bookOptions{}, b.check()
	}
	o := requestOptionsOf(ctx)
	if o != nil {
		options.scopes = o.scopes
	}
	for _, scope := range options.scopes {
		if !limit.ValidScope(scope) {
			return bookOptions{}, fmt.Errorf("ration: scope %q: it must be 1 to 32 letters, digits, '-', '_' and '.'", scope)
		}
	}
	options.reserve, err = b.reserveOf(o)
	return options, err
}
