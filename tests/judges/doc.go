// Package judges has crawler-demo crawl behind limiters that other people wrote, as a fleet of four
// processes: nginx's limit_req, HAProxy's stick tables, ulule/limiter and golang.org/x/time/rate, and a
// bucket, a fixed and a sliding window that share no code with ration.
//
//	go -C tests/judges test -v -timeout 30m -all ./...
//
// prints for each how many calls were refused, and how much of what it admits was used. nginx and HAProxy
// are skipped where they are not installed. A run in which a process of the machine stalled for longer
// than the limiter leaves room for shows nothing, and is made again.
package judges
