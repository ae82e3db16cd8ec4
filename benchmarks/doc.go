// Package benchmarks measures ration side by side with its peers, each peer a
// version named in this module's go.mod. The root module does not depend on it.
// All needs a redis-server on PATH (or RATION_REDIS_SERVER set to the path of
// one), starts it on a loopback port of its own, and sends nothing elsewhere.
// The commands below are run in the directory benchmarks.
//
// # The methods compared
//
//	go run ./methods
//
// takes under two minutes, prints the table of ways to share one quota among 64
// workers, and writes it to results/methods.md. What is measured and how is in
// that command's documentation; go run ./methods -h lists its flags.
//
// # Bookings a second
//
//	go test -run '^$' -bench Book -count 6 . | tee book.txt
//	go run golang.org/x/perf/cmd/benchstat@latest book.txt
//
// 64 goroutines on one key, ration beside PING, INCR and redis_rate on the same
// Redis in the same run. Compare within one run: absolute figures drift with
// whatever else the machine does. A row's spent=5000 means that the quota of
// 5,000 an hour is spent before the measurement begins, so that every booking is
// made ahead, behind a log of 5,000 entries and more; spent=0 means that none
// has to wait.
//
// # The logs compared
//
//	go test -run '^$' -bench Logs .
//
// One decision after another on a quota of 5,000 an hour that is spent, with each
// exact log, and with a script that sums all entries of a stream.
//
// # Memory
//
//	go test -run '^$' -bench Memory -benchtime 1x .
//
// B/booking is the size of the log in Redis over its entries: 5,000 in each kind
// of log, and 1,000,000 in a PackedLog, which takes minutes: -short leaves that
// out. B/answer is the size of the answer that is kept for a minute beside it, so
// that a booking whose reply was lost is not made twice. B-in-all/booking is what
// Redis allocated meanwhile, of that and of all else, over the bookings; its
// tables grow by doubling, so it moves with the number of bookings.
//
// # Are the measurements sound
//
//	go test -race ./...
//
// proves what the figures rest on: that each contender works on the key that it
// is given and refuses beyond its limit, that every method reaches the judge
// with the same token and that the judge refuses, and that the counter of Redis
// commands agrees with Redis.
package benchmarks
