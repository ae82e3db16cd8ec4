package faults_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A panic of the caller's own functions goes through, and leaves no body open: a server
// that recovers goes on.
func TestBodyIsClosedWhereTheCallersFunctionPanics(t *testing.T) {
	for name, change := range map[string]func(*ration.Transport){
		"Cost":    func(x *ration.Transport) { x.Cost = func(*http.Request) int { panic("Cost") } },
		"Scopes":  func(x *ration.Transport) { x.Scopes = func(*http.Request) []string { panic("Scopes") } },
		"Attach":  func(x *ration.Transport) { x.Attach = func(*http.Request, string) error { panic("Attach") } },
		"Granted": func(x *ration.Transport) { x.OnGrant = func(*http.Request, ration.Grant) { panic("Granted") } },
	} {
		t.Run(name, func(t *testing.T) {
			api := rationtest.NewAPI(nil)
			transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a"))}
			change(transport)
			content := rationtest.NewBody("content")
			require.PanicsWithValue(t, name, func() {
				_, _ = transport.RoundTrip(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", content))
			})
			require.Equal(t, 1, content.Closed)
			require.Empty(t, api.Calls())
		})
	}
	t.Run("Refused", func(t *testing.T) {
		var answers []*rationtest.Body
		api := rationtest.NewAPI(rationtest.KeepBodies(&answers, rationtest.Throttling(1, "Retry-After", "60")))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a")),
			OnRefusal: func(*http.Response, ration.Grant) { panic("Refused") }}
		require.PanicsWithValue(t, "Refused", func() {
			_, _ = transport.RoundTrip(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", strings.NewReader("content")))
		})
		require.Equal(t, 1, answers[0].Closed)
	})
}

// A Base that panics, or returns no body, leaves no timer and no call in flight behind.
func TestAFaultyBaseLeavesNothingBehind(t *testing.T) {
	for name, base := range map[string]rationtest.RoundTripper{
		"panics": func(*http.Request) (*http.Response, error) { panic("Base") },
		"no body": func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 429, Request: req}, nil
		},
		"served": func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Request: req}, nil
		},
		"no answer": func(*http.Request) (*http.Response, error) { return nil, nil },
		"both": func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200}, io.ErrUnexpectedEOF
		},
		"no request": func(req *http.Request) (*http.Response, error) { return &http.Response{StatusCode: 401}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget := rationtest.NewBudget(ration.PerHour(5))
				var contexts []context.Context
				transport := &ration.Transport{Retries: ration.RetryPolicy{Max: -1}, AttemptTimeout: time.Hour, Pool: ration.NewPool(budget, ration.NewToken("a")),
					Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
						contexts = append(contexts, req.Context())
						return base(req)
					})}
				func() {
					defer func() {
						if name == "panics" {
							require.Equal(t, "Base", recover())
						}
					}()
					resp, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
					require.Equal(t, name == "no answer" || name == "both", err != nil)
					if err == nil {
						require.Empty(t, rationtest.Drain(t, resp))
					}
				}()
				for _, ctx := range contexts {
					require.Error(t, ctx.Err(), "the attempt goes on")
				}
				require.Zero(t, budget.Counts().InFlight)
				rationtest.RequireRemaining(t, budget, ration.NewToken("a"), 5-len(contexts)) // what may have been sent counts
			})
		})
	}
}
