package wakes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// recorded keeps what a trace is told.
type recorded struct {
	mu    sync.Mutex
	waits []rationtrace.Wait // begun
	ended []rationtrace.Wait
	what  []any // all else
}

func recording() (*recorded, *rationtrace.Trace) {
	r := new(recorded)
	add := func(what any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.what = append(r.what, what)
	}
	return r, &rationtrace.Trace{
		WaitBegan: func(_ context.Context, w rationtrace.Wait) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.waits = append(r.waits, w)
		},
		WaitEnded: func(_ context.Context, w rationtrace.Wait) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, w)
		},
		Booked:     func(_ context.Context, w rationtrace.Booked) { add(w) },
		Rebooking:  func(_ context.Context, w rationtrace.Rebooking) { add(w) },
		Granted:    func(_ context.Context, w rationtrace.Granted) { add(w) },
		GaveUp:     func(_ context.Context, w rationtrace.GaveUp) { add(w) },
		Sent:       func(_ context.Context, w rationtrace.Attempt) { add(w) },
		Answered:   func(_ context.Context, w rationtrace.Answered) { add(w) },
		Refused:    func(_ context.Context, w rationtrace.Refused) { add(w) },
		Retrying:   func(_ context.Context, w rationtrace.Retrying) { add(w) },
		StoreAsked: func(_ context.Context, w rationtrace.StoreAsked) { add(w) },
	}
}

// told returns what was told of one type.
func told[T any](r *recorded) (all []T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range r.what {
		if one, is := what.(T); is {
			all = append(all, one)
		}
	}
	return all
}

// failingStore does not answer while it fails.
type failingStore struct {
	ration.Store
	fails atomic.Bool
}

// At implements [store.Store]: it is in no process.
func (s *failingStore) At(time.Time) time.Time { return time.Time{} }

func (s *failingStore) Book(ctx context.Context, r store.BookRequest) (store.Booking, error) {
	if s.fails.Load() {
		return store.Booking{}, &store.StoreError{Op: "book", Err: errors.New("connection refused")}
	}
	return s.Store.Book(ctx, r)
}

// Each way in which a caller stalls, caused by another process, is told apart: by the trace, while it
// lasts by the profile of goroutines and by counts, and afterwards by the grant.
func TestEachWaitHasItsReason(t *testing.T) {
	answered := func(status int, headers ...string) http.RoundTripper {
		return rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			return rationtest.Respond(req, status, "", headers), nil
		})
	}
	get := func(b *ration.Budget, ctx context.Context, token ration.Token) (ration.Grant, error) {
		client := &http.Client{Transport: &ration.Transport{Base: answered(http.StatusOK), Pool: ration.NewPool(b, token)}}
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/users/ann", nil)
		resp, err := client.Do(req)
		if err != nil {
			return ration.Grant{}, err
		}
		grant, _ := ration.GrantOf(resp)
		return grant, nil
	}
	hour := 3600 * time.Second
	for name, row := range map[string]struct {
		reason rationtrace.Reason
		limit  string
		cause  string
		stall  func(t *testing.T, a, b process)                     // has b stall, from a
		source func(ctx context.Context) (string, time.Time, error) // of the token
		wait   time.Duration
	}{
		"quota": {reason: rationtrace.Quota, limit: "3/1h", wait: hour, stall: func(t *testing.T, a, _ process) {
			for range 3 {
				a.book(t)
			}
		}},
		"pause": {reason: rationtrace.Pause, cause: "429 Too Many Requests from GET http://api.test/users/ann", wait: hour, stall: func(t *testing.T, a, _ process) {
			refusedOnce(t, a, http.StatusTooManyRequests)
		}},
		"endpoint": {reason: rationtrace.Cooldown, cause: "503 Service Unavailable from GET http://api.test/users/ann", wait: hour, stall: func(t *testing.T, a, b process) {
			refusedOnce(t, a, http.StatusServiceUnavailable)
			_, err := b.Wait(t.Context(), ration.NewToken("other"), 1) // b hears of it
			require.NoError(t, err)
		}},
		"store": {reason: rationtrace.StoreDown, cause: "connection refused", wait: 20 * time.Second, stall: func(_ *testing.T, _, b process) {
			down := &failingStore{Store: b.asked.Store}
			down.fails.Store(true)
			b.asked.Store = down
			time.AfterFunc(20*time.Second, func() { down.fails.Store(false) })
		}},
		"source": {reason: rationtrace.Source, wait: 30 * time.Second, source: func(context.Context) (string, time.Time, error) {
			time.Sleep(30 * time.Second)
			return "secret", time.Time{}, nil
		}, stall: func(*testing.T, process, process) {}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, ration.PerHour(3), func(t *testing.T, a, b process) {
				token := ration.NewToken("a")
				if row.source != nil {
					token = ration.TokenFrom("a", row.source)
				}
				row.stall(t, a, b)
				if row.wait == hour {
					ctx, stop := context.WithTimeout(t.Context(), time.Minute)
					defer stop()
					_, err := get(b.Budget, ctx, token)
					var exhausted *ration.ExhaustedError
					require.ErrorAs(t, err, &exhausted)
					require.Equal(t, row.reason, exhausted.Wait.Reason)
					require.Contains(t, err.Error(), row.cause)
					require.True(t, exhausted.Timeout() && exhausted.Temporary())
				}
				r, trace := recording()
				b.Trace = trace
				var grant ration.Grant
				var waits sync.WaitGroup
				waits.Go(func() {
					var err error
					grant, err = get(b.Budget, t.Context(), token)
					require.NoError(t, err)
				})
				time.Sleep(row.wait / 2)
				synctest.Wait()
				var profile bytes.Buffer
				require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
				require.Contains(t, profile.String(), `"ration_budget":"`+b.Name+`", "ration_reason":"`+row.reason.String()+`"`)
				require.Equal(t, map[rationtrace.Reason]int{row.reason: 1}, b.Counts().Waiting)
				waits.Wait()
				require.Empty(t, b.Counts().Waiting)
				require.Zero(t, b.Counts().InFlight)
				require.NotEmpty(t, grant.Waits)
				got := grant.Waits[len(grant.Waits)-1]
				require.Equal(t, row.reason, got.Reason)
				require.Equal(t, row.limit, got.Limit)
				require.Contains(t, got.Cause, row.cause)
				require.InDelta(t, row.wait.Seconds(), got.Took.Seconds(), 40, "as long as the wait lasted")
				require.Len(t, r.ended, len(r.waits))
				require.Equal(t, row.reason, r.waits[0].Reason)
				require.Equal(t, grant.Waits, told[rationtrace.Granted](r)[0].Waits)
			})
		})
	}
}

// A trace is told of a request from its booking to its response, in order, and never of a secret.
func TestATraceFollowsARequest(t *testing.T) {
	inMemory(t, ration.PerHour(1000), func(t *testing.T, a, _ process) {
		r, trace := recording()
		a.Trace = &rationtrace.Trace{StoreAsked: trace.StoreAsked}
		trace.StoreAsked = nil
		n := 0
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return rationtest.Respond(req, http.StatusTooManyRequests, "", []string{"Retry-After", "60"}), nil
			}
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		})
		tr := &ration.Transport{Base: api, Pool: ration.NewPool(a.Budget, ration.NewToken("a-secret-of-ann"))}
		req, err := http.NewRequestWithContext(ration.WithTrace(t.Context(), trace), http.MethodGet, "http://api.test/", nil)
		require.NoError(t, err)
		resp, err := (&http.Client{Transport: tr}).Do(req)
		require.NoError(t, err)
		grant, _ := ration.GrantOf(resp)
		var kinds []string
		for _, what := range r.what {
			switch what := what.(type) {
			case rationtrace.Booked:
				kinds = append(kinds, "booked")
			case rationtrace.Granted:
				kinds = append(kinds, "granted")
			case rationtrace.Attempt:
				kinds = append(kinds, fmt.Sprint("sent ", what.Method, " ", what.Host, " ", what.Resends))
			case rationtrace.Answered:
				kinds = append(kinds, "answered "+http.StatusText(what.Status))
			case rationtrace.Refused:
				kinds = append(kinds, "refused "+what.Reason+" "+what.Wait.String())
			case rationtrace.Retrying:
				kinds = append(kinds, "retrying "+http.StatusText(what.Status))
			case rationtrace.GaveUp:
				kinds = append(kinds, "gave up")
			}
		}
		require.Equal(t, []string{"booked", "granted", "sent GET api.test 0", "answered Too Many Requests", "refused quota 1m0s", "retrying Too Many Requests",
			"booked", "granted", "sent GET api.test 1", "answered OK"}, kinds)
		require.Equal(t, rationtrace.Pause, grant.Waits[0].Reason)
		require.Regexp(t, `^token [0-9a-f]{32}, 1 units, from 2000-.+, after 1m0s for pause$`, fmt.Sprint(grant))
		require.NotEmpty(t, told[rationtrace.StoreAsked](r))

		_, err = a.Try(ration.WithTrace(t.Context(), trace), ration.NewToken("b"), 1001)
		require.Error(t, err)
		require.Equal(t, rationtrace.Failed, told[rationtrace.GaveUp](r)[0].Outcome)
	})
}

// Of several limits the store is asked which binds.
func TestTheBindingLimitIsNamed(t *testing.T) {
	inMemory(t, ration.PerHour(3), func(t *testing.T, a, b process) {
		for _, p := range []process{a, b} {
			p.Limits = []ration.Limit{ration.PerSecond(2), ration.PerHour(3), {Max: 1, Window: 24 * time.Hour, Scope: "x"}}
		}
		for range 3 {
			a.book(t)
		}
		_, err := b.Try(t.Context(), ration.NewToken("a"), 1)
		var exhausted *ration.ExhaustedError
		require.ErrorAs(t, err, &exhausted)
		require.Equal(t, "3/1h", exhausted.Wait.Limit)
		require.ErrorContains(t, err, "the quota of 3/1h is spent")
	})
}

// Whatever the store is asked is told, whoever asks.
func TestEveryQuestionToTheStoreIsTold(t *testing.T) {
	inMemory(t, ration.PerHour(100), func(t *testing.T, a, other process) {
		r, trace := recording()
		a.Trace = trace
		token := ration.NewToken("a")
		grant, err := a.Try(t.Context(), token, 1)
		require.NoError(t, err)
		require.NoError(t, grant.Cancel(t.Context()))
		_, err = a.Usage(t.Context(), token)
		require.NoError(t, err)
		a.pause(t, time.Minute)
		other.pause(t, 2*time.Minute)
		_, err = a.Try(t.Context(), token, 1) // hears that the status has changed
		require.ErrorIs(t, err, ration.ErrExhausted)
		require.NoError(t, a.Resume(t.Context(), token))
		require.NoError(t, a.Reset(t.Context(), token, time.Now().Add(time.Minute)))
		api := rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("Authorization") == "Bearer bad" {
				return rationtest.Respond(req, http.StatusUnauthorized, `{"error":"invalid_token"}`, rationtest.JSON), nil
			}
			return rationtest.Respond(req, http.StatusOK, "", rationtest.InstagramHeader(100, 50)), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(a.Budget, ration.NewToken("bad"), ration.NewToken("good")),
			Provider: &ration.Provider{Windows: rationtest.Preset(t, "instagram").Windows}}}
		for range 4 {
			rationtest.Get(t, client, "http://api.test/users/ann")
		}
		asked := make(map[string]int)
		for _, one := range told[rationtrace.StoreAsked](r) {
			require.NoError(t, one.Err)
			asked[one.Operation]++
		}
		for _, operation := range []string{"book", "cancel", "usage", "pause", "resume", "reset", "quarantine", "reconcile", "status"} {
			require.NotZero(t, asked[operation], operation)
		}
	})
}
