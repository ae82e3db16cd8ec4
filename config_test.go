package ration_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/provider"
)

// Each error of a configuration names its field, whether it is asked for or a request fails by it.
func TestEachErrorOfAConfigurationNamesItsField(t *testing.T) {
	labeled := ration.NewToken("a secret")
	labeled.Label = "a secret"
	short := ration.NewToken("abc")
	short.Label = "abc"
	of := func(change func(b *ration.Budget, tr *ration.Transport), tokens ...ration.Token) *ration.Transport {
		b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(10)}, Store: new(ration.MemoryStore)}
		tr := &ration.Transport{Base: rationtest.NewAPI(nil)}
		if tokens == nil {
			tokens = []ration.Token{ration.NewToken("a")}
		}
		tr.Pool = ration.NewPool(b, tokens...)
		change(b, tr)
		return tr
	}
	for want, tr := range map[string]*ration.Transport{
		"Budget.Name":      of(func(b *ration.Budget, _ *ration.Transport) { b.Name = "" }),
		"Budget.Store":     of(func(b *ration.Budget, _ *ration.Transport) { b.Store = (*ration.RedisStore)(nil) }),
		"Budget.Margin":    of(func(b *ration.Budget, _ *ration.Transport) { b.Margin = 25 * time.Hour }),
		"Budget.MaxWait":   of(func(b *ration.Budget, _ *ration.Transport) { b.MaxWait = -1 }),
		"Budget.Revision":  of(func(b *ration.Budget, _ *ration.Transport) { b.Revision = -1 }),
		"Budget.Reserve":   of(func(b *ration.Budget, _ *ration.Transport) { b.Reserve = math.NaN() }),
		"Budget.Outage":    of(func(b *ration.Budget, _ *ration.Transport) { b.Outage = 9 }),
		"Budget.Limits":    of(func(b *ration.Budget, _ *ration.Transport) { b.Limits = nil }),
		"Budget.Limits[1]": of(func(b *ration.Budget, _ *ration.Transport) { b.Limits = append(b.Limits, ration.PerHour(0)) }),
		"Budget.Shared[0].Limits[0]": of(func(b *ration.Budget, _ *ration.Transport) {
			b.Shared = []ration.SharedAccount{ration.NewSharedAccount("app", ration.PerDay(-1))}
		}),
		"RedisStore.Client": of(func(b *ration.Budget, _ *ration.Transport) {
			b.Store = &ration.RedisStore{Client: (*redis.Client)(nil)}
		}),
		"Token":                      of(func(*ration.Budget, *ration.Transport) {}, ration.Token{}),
		"Token.Label":                of(func(*ration.Budget, *ration.Transport) {}, labeled, short),
		"Token.Limits[0]":            of(func(*ration.Budget, *ration.Transport) {}, limited("a", ration.PerHour(0))),
		"Pool":                       of(func(b *ration.Budget, tr *ration.Transport) { tr.Pool = ration.NewPool(b) }),
		"Budget":                     of(func(_ *ration.Budget, tr *ration.Transport) { tr.Pool = ration.NewPool(nil) }),
		"Transport.Pool":             of(func(_ *ration.Budget, tr *ration.Transport) { tr.Pool = nil }),
		"Transport.AttemptTimeout":   of(func(_ *ration.Budget, tr *ration.Transport) { tr.AttemptTimeout = -1 }),
		"Transport.Retries.Within":   of(func(_ *ration.Budget, tr *ration.Transport) { tr.Retries.Within = -1 }),
		"Transport.Retries.Statuses": of(func(_ *ration.Budget, tr *ration.Transport) { tr.Retries.Statuses = []int{200} }),
		"Transport.Hosts":            of(func(_ *ration.Budget, tr *ration.Transport) { tr.Hosts = []string{"https://api"} }),
		"Transport.Provider.Rules": of(func(_ *ration.Budget, tr *ration.Transport) {
			tr.Provider = &ration.Provider{Rules: []provider.MatchRule{{Status: []int{204}, Contains: "x"}}}
		}),
	} {
		t.Run(want, func(t *testing.T) {
			_, sent := tr.RoundTrip(rationtest.NewRequest(t, "GET", "http://api/", nil))
			for _, err := range []error{tr.Validate(), sent} {
				one, is := errors.AsType[*ration.ConfigError](err)
				require.True(t, is, "%v", err)
				require.Equal(t, want, one.Field, "%v", err)
			}
		})
	}
	require.NoError(t, of(func(*ration.Budget, *ration.Transport) {}).Validate())
}

// All that is wrong is told at once.
func TestAllErrorsOfAConfigurationAreTold(t *testing.T) {
	err := (&ration.Budget{Limits: []ration.Limit{ration.PerHour(5), {}}, Revision: -1}).Validate()
	for _, want := range []string{"Budget.Name is empty", "Budget.Limits[1]: ", "Budget.Revision is -1", "Budget.Store is nil"} {
		require.ErrorContains(t, err, want)
	}
	require.EqualError(t, (*ration.Budget)(nil).Validate(), "ration: the Budget is nil")
}

// What time cannot cure fails at once.
func TestAnAddressThatCannotBeRightFailsAtOnce(t *testing.T) {
	server := redistest.Start(t)
	host, port, err := net.SplitHostPort(server.Addr)
	require.NoError(t, err)
	for _, row := range []struct {
		name   string
		client redis.UniversalClient
		want   string
	}{
		{"a URL", redis.NewClient(&redis.Options{Addr: "redis://" + server.Addr}), "redis.ParseURL makes options of a URL"},
		{"no port", redis.NewClient(&redis.Options{Addr: host}), "write HOST:PORT"},
		{"TLS to a plain port", redis.NewClient(&redis.Options{Addr: net.JoinHostPort(host, port), TLSConfig: &tls.Config{InsecureSkipVerify: true}}), "speaks no TLS"},
		{"a wrong password", redis.NewClient(&redis.Options{Addr: server.Addr, Username: "nobody", Password: "wrong"}), "are not those of a user"},
	} {
		t.Run(row.name, func(t *testing.T) {
			begun := time.Now()
			b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(1)}, Store: &ration.RedisStore{Client: row.client}}
			_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
			require.ErrorContains(t, err, row.want)
			require.Less(t, time.Since(begun), 10*time.Second, "a store that does not answer is asked for 30 s")
			require.NoError(t, row.client.Close())
		})
	}
}

// A process whose Redis does not answer writes nothing but what its program does.
func TestGoRedisWritesNothing(t *testing.T) {
	if address := os.Getenv("RATION_TEST_NO_REDIS"); address != "" {
		client := redis.NewClient(&redis.Options{Addr: address})
		b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(1)}, Store: &ration.RedisStore{Client: client}, RetryStoreFor: -1}
		_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
		require.ErrorIs(t, err, ration.ErrStoreUnavailable)
		time.Sleep(time.Second) // the pool goes on dialling
		return
	}
	var stderr bytes.Buffer
	alone := exec.Command(os.Args[0], "-test.run=^TestGoRedisWritesNothing$")
	alone.Env, alone.Stderr = append(os.Environ(), "RATION_TEST_NO_REDIS=127.0.0.1:1"), &stderr
	require.NoError(t, alone.Run())
	require.Empty(t, stderr.String())
}

// What can be used, and is most likely not what was meant, is told once.
func TestADoubtfulConfigurationIsToldOnce(t *testing.T) {
	search := ration.Limit{Max: 10, Window: time.Minute, Scope: "search"}
	within := func(scopes ...string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return ration.WithScopes(ctx, scopes...) }
	}
	for name, row := range map[string]struct {
		limits []ration.Limit
		margin time.Duration
		scoped func(context.Context) context.Context
		field  string // "": nothing is told
		want   string
	}{
		"no limit covers it":    {[]ration.Limit{search}, 0, within(), "Budget.Limits", "without any limit"},
		"a misspelt scope":      {[]ration.Limit{ration.PerHour(100), search}, 0, within("serch"), "Limit.Scope", `the scope "serch", and no limit has it`},
		"a margin of a minute":  {[]ration.Limit{ration.PerSecond(50)}, time.Minute, within(), "Budget.Margin", "only 50 units leave in each 1m1s"},
		"a scope that there is": {[]ration.Limit{ration.PerHour(100), search}, 0, within("search"), "", ""},
		"none is needed":        {[]ration.Limit{ration.PerHour(100), search}, 0, within(), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var told []ration.Event
			b := &ration.Budget{Name: "x", Limits: row.limits, Margin: row.margin, Store: new(ration.MemoryStore), OnEvent: func(e ration.Event) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, e)
			}}
			for range 3 {
				_, err := b.Wait(row.scoped(t.Context()), ration.NewToken("a"), 1)
				require.NoError(t, err)
			}
			events := func() []ration.Event {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(told)
			}
			if row.field == "" {
				require.Never(t, func() bool { return len(events()) > 0 }, 50*time.Millisecond, time.Millisecond)
				return
			}
			require.Eventually(t, func() bool { return len(events()) > 0 }, time.Second, time.Millisecond)
			require.Len(t, events(), 1)
			e := events()[0]
			require.Equal(t, ration.ConfigDoubtful, e.Kind)
			require.Equal(t, row.field, e.Field)
			require.Contains(t, e.Cause, row.want)
		})
	}
}

// A Provider knows scopes that a program's own limits need not have.
func TestScopesOfAProviderAreNotTakenForMisspelt(t *testing.T) {
	b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(10)}, Store: new(ration.MemoryStore), OnEvent: func(e ration.Event) {
		t.Errorf("told: %v", e)
	}}
	tr := &ration.Transport{Base: rationtest.NewAPI(nil), Pool: ration.NewPool(b, ration.NewToken("a")), Provider: &ration.Provider{
		Scopes: func(*http.Request) []string { return []string{"core"} },
	}}
	resp, err := tr.RoundTrip(rationtest.NewRequest(t, "GET", "http://api/", nil))
	require.NoError(t, err)
	rationtest.Drain(t, resp)
	time.Sleep(10 * time.Millisecond)
}

// A Redis that throws keys away when it is full will lose a log.
func TestARedisThatEvictsIsTold(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]bool{"allkeys-lru": true, "noeviction": false} {
		server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", policy)
		told := make(chan ration.Event, 10)
		b := &ration.Budget{Name: "x", Limits: []ration.Limit{ration.PerHour(10)}, Store: &ration.RedisStore{Client: server.Client(t)}, OnEvent: func(e ration.Event) { told <- e }}
		for range 3 {
			_, err := b.Wait(t.Context(), ration.NewToken("a"), 1)
			require.NoError(t, err)
		}
		if !want {
			require.Empty(t, told, policy)
			continue
		}
		select {
		case e := <-told:
			require.Equal(t, ration.ConfigDoubtful, e.Kind)
			require.Contains(t, e.Cause, "maxmemory-policy allkeys-lru")
		case <-time.After(5 * time.Second):
			require.Fail(t, "nothing was told")
		}
		require.Empty(t, told)
	}
}
