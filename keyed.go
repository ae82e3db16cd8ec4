package ration

import (
	"context"
	"maps"
)

// WithKey returns a context whose requests have a value of a key: the route of a request, say, for limits with the [Limit].Per
// "route". An empty value is none: such a request counts under none of these limits. It comes before what the Provider's Keys
// say. Wait, Try, Take, Usage and Remaining go by it too. A budget without such limits does not look at it.
//
// Values are told apart exactly, and people see them as they are: of a path, leave secrets out, and what does not matter.
func WithKey(ctx context.Context, per, value string) context.Context {
	return withOption(ctx, func(o *requestOptions) {
		o.keys = maps.Clone(o.keys)
		if o.keys == nil {
			o.keys = make(map[string]string, 1)
		}
		o.keys[per] = value
	})
}

// withKeysOf returns a context with what a Provider says of a request's keys, where the context does not say it.
func withKeysOf(ctx context.Context, said map[string]string) context.Context {
	return withOption(ctx, func(o *requestOptions) {
		if o.keys == nil {
			o.keys = said
			return
		}
		all := maps.Clone(said)
		maps.Copy(all, o.keys)
		o.keys = all
	})
}

// keysOf returns the values of keys that options say.
func keysOf(o *requestOptions) map[string]string {
	if o == nil {
		return nil
	}
	return o.keys
}
