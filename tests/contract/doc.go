// Package contract runs the contract of package store where that takes long: with every log
// that Redis keeps, on a single server and on a Cluster, and as the Redis user that
// docs/howto/run-redis.md recommends.
package contract
