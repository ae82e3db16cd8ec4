package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// namePrefix starts every [Name].
const namePrefix = "t-"

// shared is the one server of a test binary.
var shared struct {
	mu     sync.Mutex // protects the fields, and makes Shared start one server
	main   bool       // Main runs, and will remove the server
	server *Server
	err    error // why there is no server; said to every test that asks
}

// Main runs the tests of a package and then ends the server that [Shared]
// started. It is all there is to TestMain:
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M) {
	shared.mu.Lock()
	shared.main = true
	shared.mu.Unlock()
	// A TestMain that returns exits with m.Run's code.
	m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server != nil {
		shared.server.Close()
	}
}

// Shared is one server for all tests of the package, started by the first
// that asks; it needs [Main]. Tests keep out of each other's way by putting
// [Name] into every key. None may kill, stop, flush or configure it; a test
// that must takes a server of its own with [Start]. A test that uses it in a
// bubble calls Shared before the bubble starts.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.main {
		tb.Fatal("redistest: Shared needs func TestMain(m *testing.M) { redistest.Main(m) }")
	}
	if shared.server == nil && shared.err == nil {
		needRealTime(tb, "the first call of Shared")
		// Not the test's context: the server outlives the test.
		shared.server, shared.err = Run(context.Background())
	}
	if shared.err != nil {
		tb.Fatalf("redistest: %v", shared.err)
	}
	return shared.server
}

// Name is a new name on every call, for the budget or the keys of one test:
// the test's name in lower-case letters, digits and dashes, 40 at most, and
// a random end.
func Name(tb testing.TB) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, tb.Name())
	name = name[:min(len(name), 40)]
	return fmt.Sprintf("%s%s-%08x", namePrefix, name, rand.Uint32())
}
