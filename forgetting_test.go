package ration_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// A losingStore is a store in memory that may lose a log, for all that a budget knows: it
// keeps a journal.
type losingStore struct{ ration.Store }

// At implements [store.Store]: it is in no process.
func (losingStore) At(time.Time) time.Time { return time.Time{} }

// heapAfter returns the bytes that are in use after a garbage collection.
func heapAfter() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// requireForgetting replaces a token every hour, and fails if the process keeps more in the
// end than after some days. Each day has 24 tokens.
func requireForgetting(t *testing.T, b *ration.Budget, use func(secret string)) {
	t.Helper()
	const warm, noise = 4, 80_000 // days; bytes
	kept := b.Store
	if losing, wrapped := kept.(losingStore); wrapped {
		kept = losing.Store
	}
	days := 9 // with a Redis outside of the bubble each takes real time
	if _, memory := kept.(*ration.MemoryStore); memory {
		days = 30
	}
	var before int64
	for hour := range 24 * days {
		if hour == 24*warm {
			before = heapAfter()
		}
		use(fmt.Sprint("secret-", hour))
		time.Sleep(time.Hour)
	}
	grown := heapAfter() - before
	use("the last one") // all that it refers to was in use until now
	require.Less(t, grown, int64(noise), "bytes kept of %d tokens that are gone", 24*(days-warm))
}

// Tokens that are replaced every hour leave nothing behind: neither bookings, nor what was
// learned of their limits, nor calls in flight, nor doubts about them.
func TestReplacedTokensAreForgotten(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		b.Store = losingStore{b.Store}
		pool := ration.NewPool(b, ration.NewToken("first"))
		n, next := 0, ""
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			n++
			if n == 10 {
				pool.Remove(pool.Tokens()...)
				pool.Add(ration.NewToken(next))
				return rationtest.Respond(req, http.StatusUnauthorized, "", nil), nil
			}
			// It announces another limit than the program's, and counts more calls than ours.
			return rationtest.Respond(req, http.StatusOK, "{}", rationtest.InstagramHeader(6000, 5000-n)), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: rationtest.Preset(t, "instagram"), Pool: pool}}
		requireForgetting(t, b, func(secret string) {
			n, next = 0, secret
			for range 10 {
				rationtest.Get(t, client, "http://api.test/")
			}
		})
	})
}

// So do pauses that have ended, of endpoints that are called no more, and quarantines of
// tokens that were replaced.
func TestPausesThatHaveEndedAreForgotten(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		pool := ration.NewPool(b, ration.NewToken("first"))
		n, next := 0, ""
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			switch n++; {
			case n == 20:
				pool.Add(ration.NewToken(next))
				return rationtest.Respond(req, http.StatusUnauthorized, `{"message":"Bad credentials"}`, rationtest.JSON), nil
			case n%2 == 1:
				return rationtest.Respond(req, http.StatusServiceUnavailable, "", []string{"Retry-After", "1"}), nil
			}
			return rationtest.Respond(req, http.StatusOK, "{}", nil), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: rationtest.Preset(t, "github"), Pool: pool}}
		requireForgetting(t, b, func(secret string) {
			n, next = 0, secret
			old := pool.Tokens()
			for range 10 {
				path := strings.Map(func(digit rune) rune { return digit - '0' + 'a' }, strconv.Itoa(rand.Int()))
				rationtest.Get(t, client, "http://api.test/"+path)
			}
			pool.Remove(old...)
		})
	})
}

// So do tokens without a pool.
func TestTokensThatAreNoLongerUsedAreForgotten(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		b.Store = losingStore{b.Store}
		requireForgetting(t, b, func(secret string) {
			for range 10 {
				_, err := b.Wait(t.Context(), ration.NewToken(secret), 1)
				require.NoError(t, err)
			}
		})
	})
}
