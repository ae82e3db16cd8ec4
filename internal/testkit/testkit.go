// Package testkit is the roof over what only tests use: its folders are Redis servers of their own, fakes,
// simulated providers, recorded responses, fleets of processes, and plots.
package testkit

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
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

// Golden demands that a file has the text that is shown, which it is given first if it is to be redrawn.
func Golden(t testing.TB, file, shown string, redraw bool) {
	t.Helper()
	if redraw {
		require.NoError(t, os.WriteFile(file, []byte(shown), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), shown, file)
}

// A Buffer is written and read by several goroutines at once: what a process prints, or a timer logs. The zero Buffer is empty.
type Buffer struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
