// Package testkit is the roof over what only tests use: its folders are Redis servers of their own, fakes,
// simulated providers, recorded responses, fleets of processes, and plots.
package testkit

import (
	"os"
	"testing"
)

// Slow says of a test that it waits in real time for about a second or longer, or starts several servers:
// make test, which is quick, skips it, and make check runs it.
func Slow(t testing.TB) {
	t.Helper()
	if os.Getenv("RATION_TESTS") == "quick" {
		t.Skip("slow: make check runs it")
	}
}

// Long says of a test, or of a variant of one, that make check has no time for it: make test-long runs it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make test-long runs it")
	}
}
