package ration

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ration-go/ration/store"
)

// workerName names this process to people.
var workerName = sync.OnceValue(func() string {
	return fmt.Sprintf("%.100s, process %d", cmp.Or(hostName(), "a worker"), os.Getpid())
})

// hostName returns the name of this machine; empty: nobody knows.
var hostName = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return strings.ToValidUTF8(host, "")
})

// nameInStore returns what this worker is called in the store: its host, in at most 40 letters, digits,
// dots and dashes, its process, and of several budget values in a process which one.
func (b *Budget) nameInStore() string {
	host := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, hostName())
	id := b.workerID()
	return fmt.Sprintf("%s:%d:%x", cmp.Or(host[:min(len(host), 40)], "unknown"), os.Getpid(), id[:3])
}

// workerID returns a random ID of this budget value. If two workers had the same, each
// would take the other's records for its own.
func (b *Budget) workerID() store.BookingID {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.worker == (store.BookingID{}) {
		_, _ = rand.Read(b.worker[:]) // it never fails
	}
	return b.worker
}

// isLocal reports whether the store is in this process.
func (b *Budget) isLocal() bool { return !b.Store.At(time.Now()).IsZero() }
