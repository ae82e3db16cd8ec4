// Package benchmarks measures ration side by side with its peers, each peer a
// version named in this module's go.mod. The root module does not depend on it.
// All needs a redis-server on PATH (or RATION_REDIS_SERVER set to the path of
// one), starts it on a loopback port of its own, and sends nothing elsewhere.
// The commands below are run in the directory benchmarks.
//
// # What it costs, against its targets
//
//	go run ./targets
//	go run golang.org/x/perf/cmd/benchstat results/bench.txt
//
// or make bench in the root measures all that ration may cost, beside PING, INCR and
// every peer, as ratios within one run; prints one table of what is met and what is
// not; and writes it to results/targets.md and benchmarks/README.md, and the raw measurements
// to results/bench.txt. It takes ten to twelve minutes, for which the machine should
// have nothing else to do, and exits with status 1 if something is not met of which
// nothing was shown to stand in its way. How each row is measured is in that
// command's documentation; go run ./targets -h lists its flags, such as -rows 1,3
// for some of the rows.
//
// # The methods compared
//
//	go run ./methods
//
// takes under two minutes, prints the table of ways to share one quota among 64
// workers, and writes it to results/methods.md. What is measured and how is in
// that command's documentation; go run ./methods -h lists its flags.
//
// # The algorithms compared
//
//	go run ./algorithms
//
// takes some minutes and writes results/algorithms.md: what each algorithm costs,
// and what it lets through at worst.
//
// # How far one Redis goes
//
//	go run ./scale
//
// takes under two minutes and writes results/scale.md: what a booking takes of a
// Redis's time, on one server and on a Cluster of three, with the accounts in one
// budget and dealt to several, and how many tokens that is enough for. Its tables
// are those of docs/operations.md: go test -run TestOperationsPage -redraw ./tests/pages in the
// root puts them there.
//
// # Bookings a second
//
//	go test -run '^$' -bench Book -count 6 . | tee book.txt
//	go run golang.org/x/perf/cmd/benchstat book.txt
//
// 64 goroutines on one key with 5,000 calls in its window, ration beside every peer
// of internal/peers, on the same Redis in the same run. Compare within one run:
// absolute figures drift with whatever else the machine does. A row's spent=5000
// means that the quota of 5,000 an hour is spent before the measurement begins, so
// that every booking is made ahead; spent=0, and every row of a peer, means that
// none has to wait. article-MULTI and stream-sum read their whole log with each
// call, which grows with each: compare them with -benchtime 500x.
//
// # The logs compared
//
//	go test -run '^$' -bench Logs .
//
// One decision after another on a quota of 5,000 an hour that is spent, with each
// exact log, and with a script that sums all entries of a stream.
//
// # What a booking's script is made of
//
//	go test -run '^$' -bench Parts -benchtime 10x .
//
// Each Redis command that lua/quick.lua calls, and quick.lua as a whole, in a loop
// inside of Redis: microseconds of a warm server that does nothing else.
//
// # Memory
//
//	go test -run '^$' -bench Memory -benchtime 1x .
//
// B/booking is the size of the log in Redis over its entries: 5,000 in each kind
// of log. B-in-all/booking is what Redis allocated meanwhile, of that and of all else,
// over the bookings; its tables grow by doubling, so it moves with the number of
// bookings.
//
// # Are the measurements sound
//
//	go test -race ./...
//
// proves what the figures rest on: that each contender counts on the key that it
// is given and on no other, refuses beyond its limit, and sends what it says; that
// a contender which does more work is found to be slower; that logs which were
// filled hold what they should; that every method reaches the judge with the same
// token and that the judge refuses; that the counter of Redis commands agrees
// with Redis; and that a budget which is moved to another node of a Cluster while
// it is booked on loses no booking.
package benchmarks
