package ration

import "github.com/ration-go/ration/internal/memstore"

// A MemoryStore keeps logs in memory, for the goroutines of one process. It
// keeps the promises of [RedisStore] and gives the same slots. The zero
// MemoryStore is empty and ready. It must not be copied after first use.
//
// It loses nothing and its clock does not step, so it ignores the fields of a
// request that guard against losses and steps, and does not count workers.
//
// It starts no goroutine. Every booking removes some expired entries and
// accounts: an entry takes 24 bytes until its window has passed, and an
// account stays until a day later. Its clock is the monotonic one, so that steps of the
// machine's clock do not move it. In a bubble of testing/synctest it is the
// bubble's clock: a test of an hour of waits takes no time.
//
// Its methods are those of [Store].
type MemoryStore struct{ memory }

// memory is what MemoryStore has its methods from: a method of its own would copy what
// [Budget.Wait] asks and learns of a slot that has come.
type memory = memstore.Store
