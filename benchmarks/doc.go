// Package benchmarks measures ration side by side with its peers, each peer a
// version named in this module's go.mod. The root module does not depend on it.
// All needs a redis-server on PATH (or RATION_REDIS_SERVER set to the path of
// one), starts it on a loopback port of its own, and sends nothing elsewhere.
// The commands below are run in the directory benchmarks.
//
// # The commands
//
//	go run ./targets    # or make bench in the root: what ration costs, against its targets
//	go run ./methods    # ways to share one quota among 64 workers
//	go run ./algorithms # what each algorithm costs, and what it lets through at worst
//	go run ./scale      # how far one Redis goes
//
// README.md says how long they take and what they write, their own documentation what
// they measure and how, and -h their flags. The machine should have nothing else to do
// meanwhile. To read the raw measurements of targets:
//
//	go run golang.org/x/perf/cmd/benchstat results/bench.txt
//
// # Bookings a second
//
//	go test -run '^$' -bench Book -count 6 . | tee book.txt
//	go run golang.org/x/perf/cmd/benchstat book.txt
//
// 64 goroutines on one key with 5,000 calls in its window, ration beside every peer
// of internal/peers, on the same Redis in the same run. A row's spent=5000 means that
// the quota of 5,000 an hour is spent before the measurement begins, so that every
// booking is made ahead; spent=0, and every row of a peer, means that none has to
// wait. article-MULTI and stream-sum read their whole log with each call, which grows
// with each: compare them with -benchtime 500x.
//
// # Calls of several units
//
//	go test -run '^$' -bench Costs -benchtime 20000x .
//
// 64 goroutines on a pool of 1,000 tokens that is spent, with calls of one cost or of
// several. Where a cost does not divide the limit some units of each token stay free, which
// no call can use.
//
// # Logs, scripts and memory
//
//	go test -run '^$' -bench Logs .
//	go test -run '^$' -bench Memory -benchtime 1x .
//
// Logs makes one decision after another on a quota of 5,000 an hour that is spent,
// with each exact log, and with a script that sums all entries of a stream. Memory's
// B/booking is the size of the log in Redis over its entries: 5,000 in each kind of log.
// B-in-all/booking is what Redis allocated meanwhile, of that and of all else, over the
// bookings; its tables grow by doubling, so it moves with the number of bookings.
//
// # Pauses
//
//	go test -run '^$' -bench Pauses -benchtime 300x .
//
// One process pauses an endpoint and another one hears of it with its next booking, while
// 100, 2,500 or 25,000 others are paused. Column x is the time over that with 100.
//
// # Are the measurements sound
//
//	go test -race ./...
//
// proves what the figures rest on: that each contender counts on the key that it is
// given and on no other, refuses beyond its limit, and sends what it says; that logs
// hold what they should; and that the judge and the workers count the same calls.
package benchmarks
