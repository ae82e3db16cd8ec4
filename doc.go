// Package ration keeps a fleet of API clients within the rate limits of a provider.
//
// A [Transport] is set as http.Client.Transport. Before a request leaves, the Transport
// books a slot for it in a log that a [Store] keeps for each account, waits for that
// slot, attaches the token and sends. Workers on many machines whose [Budget] has the
// same Name in the same Redis share one log, and so one quota.
//
//	store := &ration.RedisStore{Client: rdb}
//	budget := &ration.Budget{Name: "instagram", Limits: []ration.Limit{ration.PerHour(5000)}, Store: store}
//	pool := ration.NewPool(budget, ration.NewToken(secret1), ration.NewToken(secret2))
//	client := &http.Client{Transport: &ration.Transport{Pool: pool, Hosts: []string{"graph.instagram.com"}}}
//
// # Words
//
//   - A provider is the API that is called. It counts calls, and refuses them.
//   - A token is a credential. An account is what the provider counts for: by default
//     each token is an account of its own.
//   - A limit is at most Max units of cost in any Window.
//   - A booking is an entry in the log. Its slot is the instant at which the request may
//     leave. A grant is a booking whose slot has come.
//   - A refusal is the provider's 429, or its equivalent.
//   - A pause keeps requests from an account, an endpoint or an object after a refusal.
//
// # The rule
//
// A caller books once. The store answers with the slot, in the future if need be, and
// the caller sleeps until then. For a log t[0..n-1] of slots and a limit of Max units in
// Window, a booking of one unit gets the slot
//
//	max(now, t[n-1], t[n-Max]+Window)
//
// So no window of any alignment holds more than Max, requests leave in the order in which
// the store received their bookings, and nobody polls.
//
// This is [SlidingLog], the default. For providers that count in another way there are
// other values of [Algorithm]. A budget may have limits of several kinds; a booking gets
// the first slot that all of them admit.
//
// # Choosing what to call
//
//   - An HTTP client needs only [Transport]. [Transport.Provider] names the API, so that
//     its responses are understood: package presets has many.
//   - Other work calls [Budget.Wait] for one token, or [Pool.Take] for the token that is
//     free first. [Budget.Try] does not wait.
//   - [Budget.Remaining] and [Budget.Usage] return what the fleet has left. They book
//     nothing.
//   - Limits that cover a part of the requests have a Scope: see [Transport.Scopes] and
//     [WithScopes]. Requests that cost more than one unit: see [Transport.Cost] and
//     [WithCost]. Quota reserved for urgent requests: see [Budget.Reserve] and
//     [WithReserve]. A limit that several tokens share: see [Budget.Shared].
//   - [Budget.OnEvent] and [Transport.OnRefusal] report what an operator wants to know.
//
// # What a Transport does with responses
//
// After a refusal the whole fleet pauses the affected account, endpoint or object, and
// the request is retried on another token or after the pause. A token that is expired or
// revoked is quarantined. Units that competing clients have spent are recorded in the
// log. If a response announces a different limit, the fleet adopts it.
package ration
