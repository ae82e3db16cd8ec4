// Package requestpathtrace records which functions are entered. Requestpath adds it to the
// library in the program that it builds.
package requestpathtrace

import (
	"slices"
	"sync"
	"time"
)

// An Entry is one call of a function.
type Entry struct{ File, Function string }

var (
	mu      sync.Mutex // protects entries
	entries []Entry
)

// Enter is called first by every function.
func Enter(file, function string) {
	mu.Lock()
	defer mu.Unlock()
	entries = append(entries, Entry{file, function})
}

// Record returns what is entered while f runs, and after it until nothing is any more.
func Record(f func() error) ([]Entry, error) {
	before := len(Rest())
	err := f()
	return Rest()[before:], err
}

// Rest waits until nothing has been entered for a while, and returns all that was.
func Rest() []Entry {
	const quiet = 200 * time.Millisecond
	for last := -1; ; time.Sleep(quiet) {
		mu.Lock()
		all := slices.Clone(entries)
		mu.Unlock()
		if len(all) == last {
			return all
		}
		last = len(all)
	}
}
