package ration

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
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
	id := b.durable.Worker
	return fmt.Sprintf("%s:%d:%x", cmp.Or(host[:min(len(host), 40)], "unknown"), os.Getpid(), id[:3])
}
