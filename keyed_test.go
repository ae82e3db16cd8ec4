package ration_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// parseLimits reads limits as texts.
func parseLimits(t *testing.T, texts ...string) (limits []ration.Limit) {
	t.Helper()
	for _, text := range texts {
		one, err := ration.ParseLimit(text)
		require.NoError(t, err)
		require.Equal(t, text, one.String())
		limits = append(limits, one)
	}
	return limits
}

// slotOf books for a context and returns when the slot is, after the begin.
func slotOf(ctx context.Context, t *testing.T, b *ration.Budget, token ration.Token, begun time.Time) time.Duration {
	t.Helper()
	grant, err := b.Wait(ctx, token, 1)
	require.NoError(t, err)
	return grant.Slot.Sub(begun).Truncate(time.Second)
}

func TestALimitPerKeyCountsEachValueByItself(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = append([]ration.Limit{ration.PerMinute(7)}, parseLimits(t, "2/1m:per=route", "1/10s:gcra,per=route")...)
		token, begun, other := ration.NewToken("a"), time.Now(), rationtest.Peer(b)
		a, c := ration.WithKey(t.Context(), "route", "GET /a"), ration.WithKey(t.Context(), "route", "GET /c")
		none := ration.WithKey(t.Context(), "route", "")
		require.Zero(t, slotOf(a, t, b, token, begun))
		require.Zero(t, slotOf(c, t, other, token, begun), "another route waits for none")
		require.Equal(t, 10*time.Second, slotOf(a, t, other, token, begun), "another process has the same route")
		require.Equal(t, 10*time.Second, slotOf(c, t, b, token, begun))
		require.Equal(t, 10*time.Second, slotOf(none, t, b, token, begun), "it counts under none of them")
		left, err := b.Remaining(none, token)
		require.NoError(t, err)
		require.Equal(t, 2, left)
		usage, err := b.Usage(a, token)
		require.NoError(t, err)
		require.Zero(t, usage.Remaining())
		require.Equal(t, "2/1m:per=route", usage.Limits[1].Limit.String())
		require.Equal(t, time.Minute, slotOf(a, t, b, token, begun))
	})
}

// A spent route is told once, though others have room meanwhile, and so is that it has room again.
func TestASpentRouteIsToldOnce(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = append([]ration.Limit{ration.PerMinute(100)}, parseLimits(t, "1/1h:per=route")...)
		told := make(map[ration.EventKind]int)
		b.OnEvent = func(e ration.Event) { told[e.Kind]++ }
		token, spent := ration.NewToken("a"), ration.WithKey(t.Context(), "route", "spent")
		for i := range 20 {
			_, _ = b.Try(spent, token, 1)
			_, err := b.Try(ration.WithKey(t.Context(), "route", fmt.Sprint(i)), token, 1)
			require.NoError(t, err)
		}
		require.Equal(t, map[ration.EventKind]int{ration.QuotaSpent: 1}, told)
		time.Sleep(time.Hour + time.Second)
		_, err := b.Try(spent, token, 1)
		require.NoError(t, err)
		require.Equal(t, map[ration.EventKind]int{ration.QuotaSpent: 1, ration.QuotaBack: 1}, told)
	})
}

// Values that nobody uses any more make room for others, whichever they are.
func TestOldValuesKeepNoNewOnesOut(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = append([]ration.Limit{ration.PerSecond(100_000)}, parseLimits(t, "100/10s:per=route")...)
		use := func(name string, n int) {
			t.Helper()
			for i := range n {
				_, err := b.Try(ration.WithKey(t.Context(), "route", fmt.Sprint(name, i)), ration.NewToken("a"), 1)
				require.NoError(t, err)
			}
		}
		use("old", 1000)
		_, err := b.Try(ration.WithKey(t.Context(), "route", "one more"), ration.NewToken("a"), 1)
		require.ErrorContains(t, err, "more than 1000 values of route")
		time.Sleep(11 * time.Second)
		use("old", 500)
		use("new", 500)
	})
}

// What a request has of a unit may count by a key as well, and a request may have several keys.
func TestAUnitIsCountedPerKey(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = append([]ration.Limit{ration.PerMinute(50)}, parseLimits(t, "100/1m:unit=tokens,per=model", "150/1m:unit=tokens", "3/1m:per=user")...)
		token, begun := ration.NewToken("a"), time.Now()
		of := func(model, user string, tokens int) context.Context {
			ctx := ration.WithKey(ration.WithKey(t.Context(), "model", model), "user", user)
			return ration.WithUnits(ctx, map[string]int{"tokens": tokens})
		}
		require.Zero(t, slotOf(of("small", "ann", 60), t, b, token, begun))
		require.Zero(t, slotOf(of("large", "ann", 60), t, b, token, begun))
		require.Equal(t, time.Minute, slotOf(of("small", "bob", 41), t, b, token, begun), "the model's limit, and that of all")
		require.Equal(t, time.Minute, slotOf(of("large", "ann", 100), t, b, token, begun))
		require.Equal(t, 2*time.Minute, slotOf(of("other", "ann", 10), t, b, token, begun), "the limit of all")
	})
}

func TestAKeyThatNobodySetsIsAnError(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = append([]ration.Limit{ration.PerMinute(5000)}, parseLimits(t, "2/1m:per=route")...)
		token := ration.NewToken("a")
		_, err := b.Wait(t.Context(), token, 1)
		require.ErrorContains(t, err, `say which a request has with WithKey(ctx, "route", value)`)
		_, err = ration.NewPool(b, token).Take(ration.WithKey(t.Context(), "rout", "x"), 1)
		require.ErrorContains(t, err, `WithKey(ctx, "route", value)`)
		for n := range 1000 {
			_, err := b.Try(ration.WithKey(t.Context(), "route", fmt.Sprint(n)), token, 1)
			require.NoError(t, err)
		}
		_, err = b.Try(ration.WithKey(t.Context(), "route", "one more"), token, 1)
		require.ErrorContains(t, err, "requests have more than 1000 values of route within 1m0s")
		time.Sleep(time.Minute + time.Second)
		_, err = b.Try(ration.WithKey(t.Context(), "route", "one more"), token, 1)
		require.NoError(t, err, "the others are out of use")
	})
}

// The presets say which of their limits' keys a request has.
func TestAPresetNamesTheRouteOfARequest(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		discord := rationtest.Preset(t, "discord")
		b.Limits = append([]ration.Limit{ration.PerSecond(50)}, parseLimits(t, "2/5s:per=route")...)
		begun, slots := time.Now(), make(map[string][]int)
		client := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(b, ration.NewToken("a")), Provider: discord,
			Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
				route := req.Method + " " + req.URL.Path
				slots[route] = append(slots[route], int(time.Since(begun).Seconds()))
				return rationtest.Served.To(req), nil
			})}}
		for range 3 {
			for _, path := range []string{"/channels/1234567890/messages", "/channels/1234567891/messages"} {
				resp, err := client.Get("https://discord.com/api/v10" + path)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
		}
		require.Equal(t, map[string][]int{
			"GET /api/v10/channels/1234567890/messages": {0, 0, 5}, "GET /api/v10/channels/1234567891/messages": {0, 0, 5},
		}, slots)
	})
}
