package simulated_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/simulated"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// firstCall is 300 ms after a whole second, so that rounding shows. Bubbles begin in the year 2000, when Unix time had
// nine digits; no provider sends such.
var firstCall = time.Date(2026, 1, 15, 12, 0, 0, 300_000_000, time.UTC)

// A conclusion is what the reader should conclude from a refusal.
type conclusion struct {
	reason provider.Reason
	scope  provider.Scope
	wait   time.Duration // zero: unknown
}

// readings are what the reader should conclude in each dialect from a call beyond the quota, and from blocks of 4.2 s of each
// kind. The quota is 4 calls in 10 s, the first at 0.3 s and one too many at 1.8 s. So the next is accepted at 10.3 s in
// a log or a window from there, at 10 s in one of the clock, and at 2.8 s in a bucket, which has one more each 2.5 s. A
// wait is what the dialect can say of that: Unix time and Retry-After are in whole seconds.
var readings = map[string]struct {
	preset                         string // if it is not named like the dialect
	percent                        bool   // of what is left, in place of numbers
	spent                          conclusion
	quota, secondary, revoked, app conclusion
}{
	"discord": {
		spent:     conclusion{provider.ReasonQuota, "token+bucket", 9 * time.Second},
		quota:     conclusion{provider.ReasonQuota, "token+bucket", 5 * time.Second},
		secondary: conclusion{provider.ReasonQuota, "token+bucket", 5 * time.Second},
		revoked:   conclusion{provider.ReasonDeadToken, "", 0},
		app:       conclusion{provider.ReasonQuota, "token", 5 * time.Second},
	},
	"github": {
		spent:     conclusion{provider.ReasonQuota, "user+core", 9200 * time.Millisecond},
		quota:     conclusion{provider.ReasonQuota, "user+core", 4200 * time.Millisecond},
		secondary: conclusion{provider.ReasonSecondary, "", 5 * time.Second},
		revoked:   conclusion{provider.ReasonDeadToken, "", 0},
		app:       conclusion{provider.ReasonQuota, "ip+core", 4200 * time.Millisecond},
	},
	"ietf": {
		preset:    "generic",
		spent:     conclusion{provider.ReasonQuota, "", 9 * time.Second},
		quota:     conclusion{provider.ReasonQuota, "", 5 * time.Second},
		secondary: conclusion{provider.ReasonSecondary, "", 5 * time.Second},
		revoked:   conclusion{provider.ReasonDeadToken, "", 0},
		app:       conclusion{provider.ReasonQuota, "", 5 * time.Second},
	},
	"instagram": {
		spent:     conclusion{provider.ReasonQuota, "token", 0},
		quota:     conclusion{provider.ReasonQuota, "token", 0},
		secondary: conclusion{provider.ReasonQuota, "token", 0},
		revoked:   conclusion{provider.ReasonDeadToken, "", 0},
		app:       conclusion{provider.ReasonQuota, "token", 0},
	},
	"meta": {
		percent:   true,
		spent:     conclusion{provider.ReasonQuota, "user", 0},
		quota:     conclusion{provider.ReasonQuota, "user", 0},
		secondary: conclusion{provider.ReasonQuota, "", 0},
		revoked:   conclusion{provider.ReasonDeadToken, "", 0},
		app:       conclusion{provider.ReasonQuota, "app", 0},
	},
	"openai": {
		spent:     conclusion{provider.ReasonQuota, "", time.Second},
		quota:     conclusion{provider.ReasonQuota, "", 4200 * time.Millisecond},
		secondary: conclusion{provider.ReasonQuota, "", 4200 * time.Millisecond},
		revoked:   conclusion{provider.ReasonDeadToken, "", 0},
		app:       conclusion{provider.ReasonQuota, "", 4200 * time.Millisecond},
	},
	"shopify": {
		spent:     conclusion{provider.ReasonQuota, "", 2 * time.Second},
		quota:     conclusion{provider.ReasonQuota, "", 5 * time.Second},
		secondary: conclusion{provider.ReasonQuota, "", 5 * time.Second},
		revoked:   conclusion{provider.ReasonDeadToken, "", 0},
		app:       conclusion{provider.ReasonBan, "ip", 0},
	},
	"x": {
		spent:     conclusion{provider.ReasonQuota, "", 9200 * time.Millisecond},
		quota:     conclusion{provider.ReasonQuota, "", 4200 * time.Millisecond},
		secondary: conclusion{provider.ReasonQuota, "", 10200 * time.Millisecond}, // its only window has some left
		revoked:   conclusion{provider.ReasonUnauthorized, "", 0},                 // it says no more
		app:       conclusion{provider.ReasonQuota, "app", 4200 * time.Millisecond},
	},
}

// TestDialectsAreReadAsTheyAreMeant reads the answers of each dialect with the preset of that provider.
func TestDialectsAreReadAsTheyAreMeant(t *testing.T) {
	for _, name := range simulated.Dialects() {
		row, found := readings[name]
		require.True(t, found, name)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				speaks, err := simulated.DialectNamed(name)
				require.NoError(t, err)
				if row.preset == "" {
					row.preset = name
				}
				preset, err := presets.Named(row.preset)
				require.NoError(t, err)
				p := &simulated.Provider{Dialect: speaks, Limit: 4, Window: 10 * time.Second}
				read := func() ration.Feedback { return answered(p, preset) }
				requireLeft := func(f ration.Feedback, left int64) {
					t.Helper()
					if row.percent {
						require.Equal(t, provider.Optional[float64]{Value: float64(25 * left), Known: true}, f.RemainingPercent)
						return
					}
					require.Equal(t, provider.Optional[int64]{Value: 4, Known: true}, f.Limit)
					require.Equal(t, provider.Optional[int64]{Value: left, Known: true}, f.Remaining)
				}
				requireRefusal := func(f ration.Feedback, want conclusion) {
					t.Helper()
					got := conclusion{f.Reason, f.Scope, f.Wait.Value.Truncate(time.Millisecond)} // Unix time is read as a float
					require.Equal(t, want, got, f.WaitBy)
					require.Equal(t, want.wait > 0, f.Wait.Known)
					require.Equal(t, want.reason.Refuses(), f.Refused)
					require.Equal(t, want.reason == provider.ReasonDeadToken, f.DeadToken)
				}

				time.Sleep(time.Until(firstCall))
				for left := int64(3); left >= 0; left-- {
					f := read()
					require.False(t, f.Refused)
					requireLeft(f, left)
				}
				time.Sleep(1500 * time.Millisecond)
				f := read()
				requireRefusal(f, row.spent)
				if name != "instagram" { // which says nothing of what is left when it refuses
					requireLeft(f, 0)
				}
				time.Sleep(time.Minute)
				require.False(t, read().Refused)
				for _, one := range []struct {
					kind simulated.Kind
					want conclusion
				}{
					{simulated.KindQuota, row.quota}, {simulated.KindSecondary, row.secondary},
					{simulated.KindDead, row.revoked}, {simulated.KindApp, row.app},
				} {
					require.NoError(t, p.Block("a-secret", 4200*time.Millisecond, one.kind))
					requireRefusal(read(), one.want)
					require.NoError(t, p.Block("a-secret", 0, one.kind))
				}
			})
		})
	}
}

// answered makes one call as the preset does, and returns what the reader concludes from the answer.
func answered(p *simulated.Provider, preset *ration.Provider) ration.Feedback {
	r := httptest.NewRequest(http.MethodGet, p.StartURLs("http://example.com")[0], nil)
	attach := preset.Attach
	if attach == nil {
		attach = provider.Bearer
	}
	_ = attach(r, "a-secret")
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return preset.ReadResponse(w.Result(), time.Now())
}
