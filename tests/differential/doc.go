// Package differential compares RedisStore with MemoryStore, and both with models written
// as plainly as possible: random histories of bookings, cancellations, pauses, losses and
// clock steps must get the same answers, to the microsecond.
package differential
