// Package ration holds an API crawler's requests back until the quota that
// its whole fleet shares has room for them.
//
// A [Transport] is set as http.Client.Transport. Before a request leaves, it
// books a slot in a log that a [Store] keeps for each account, waits for
// exactly that slot, and sends. The log is the fleet's: workers on many
// machines that name the same [Budget] in the same Redis share one quota, in
// the order in which they asked.
//
//	store := &ration.RedisStore{Client: rdb}
//	budget := &ration.Budget{Name: "instagram", Limits: []ration.Limit{ration.PerHour(5000)}, Store: store}
//	pool := ration.NewPool(budget, ration.NewToken(secret1), ration.NewToken(secret2))
//	client := &http.Client{Transport: &ration.Transport{Pool: pool}}
//
// # Words
//
// A provider is the API being called: it counts and it refuses. A token is a
// credential; an account is whose quota the token spends, by default the
// token's own. A limit is at most Max units of cost in any Window. A booking
// is a unit of work entered in the log, its slot the instant at which it may
// leave, and a grant a booking whose slot has come. A refusal is the
// provider's 429, which the package exists to prevent.
//
// # The rule
//
// A caller does not ask again and again whether it may leave. It books once:
// the store answers when it may, in the future if need be, and the caller
// sleeps until then. For a log t[0..n-1] of slots and a limit of Max units in
// Window, a booking of one unit gets the slot
//
//	max(now, t[n-1], t[n-Max]+Window)
//
// so that no window of any alignment holds more than Max, the order of
// arrival at the store is the order of leaving, and nobody polls.
//
// That is [SlidingLog], an exact log. Not every provider counts so: [Algorithm]
// has the others, and limits of any mix in one decision. A limit may cover the
// requests of a scope only, a request be charged to shared accounts beside its
// token's, and leave a share of each limit to those that are in a hurry
// ([Budget.Keep]).
//
// # What answers say
//
// A [Transport] reads every answer, in the dialect that [Transport.Provider] names:
// [ProviderNamed] has those of many APIs. A refusal pauses what it is about, in the
// whole fleet, and the request is sent again on another token or when that is over.
// A token that is expired or revoked is set aside. What others have spent is entered
// in the log, and a limit that is announced rules from then on. A [Notice] tells of
// what an operator may want to know.
//
// # Choosing what to call
//
// An HTTP client needs only [Transport]. Other work calls [Budget.Wait] for
// one token, [Budget.Try] to learn at once whether there is room, and
// [Pool.Take] for whichever token is free first. [Budget.Remaining] and
// [Budget.Usage] tell what is left and change nothing.
package ration
