package ration

import "context"

// Priorities: a request is the more urgent, the smaller its reserve. A reserve is the share
// of every limit that the request leaves to requests with a smaller one. With a reserve of
// 0.2 it is booked as if Max were 80 % of what it is, so a request without a reserve finds
// a fifth of any window free of it, and leaves before those that wait for the next window.
// No slot that was granted is moved, so nobody starves.
//
// A budget's requests have the reserve of [Budget.Reserve], unless their context says
// otherwise. The store computes what that is of each limit, when it looks for the slot:
// see store.BookRequest.

// WithReserve returns a context whose requests leave this share of every limit, from 0
// to 0.999, to requests with a smaller reserve. It replaces [Budget.Reserve]: give urgent
// requests of a budget that has a reserve WithReserve(ctx, 0).
func WithReserve(ctx context.Context, share float64) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.reserve, o.hasReserve = share, true })
}
