// Package stress judges histories that a seed draws: pools of 1 to 1,000 tokens, 1 to 128 callers
// of 1 to 4 processes, of the pool or of one token, with or without waiting, costs, units and routes, units that are settled,
// cancellations, deadlines, MaxWait, callers that leave, replies that are lost or read late, stores that lose their logs, pauses and
// resumptions, and limits of calls, units and routes that are raised and lowered, in memory, on Redis and on a Cluster. The judge knows only what callers were
// granted. After each history it compares
// that with what the store has, account by account: nothing more, nothing less, spent evenly, and
// at no time more than the limits allow; nobody was told later than 0.3 s after its deadline or MaxWait; and nothing is booked ahead. A
// history ends when none of its goroutines is left.
//
// Each history is a test of its own, so one seed runs alone:
//
//	go test ./tests/stress -run 'TestStress/17$'
//	go test ./tests/stress -seeds 1000
package stress
