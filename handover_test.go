package ration_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// A grant is taken by one process, and what came of it is told to another: nothing is booked again, the units that were used count where
// they fell, and the fleet hears of a refusal.
func TestAGrantIsReportedToAnotherProcess(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		sent := 0
		b.Limits = append([]ration.Limit{ration.PerHour(10)}, parseLimits(t, "100/1h:unit=tokens", "3/1h:per=route")...)
		token := ration.NewToken("a")
		ctx := ration.WithKey(ration.WithUnits(t.Context(), map[string]int{"tokens": 50}), "route", "GET /a\x00b")
		used := func() (all []int) {
			t.Helper()
			u, err := b.Usage(ctx, token)
			require.NoError(t, err)
			for _, l := range u.Limits {
				all = append(all, l.Used)
			}
			return all
		}
		grant, err := ration.NewPool(b, token).Take(ctx, 2)
		require.NoError(t, err)
		text, err := grant.MarshalText()
		require.NoError(t, err)
		require.NotContains(t, string(text), "Bearer")

		other := ration.NewPool(rationtest.Peer(b), ration.NewToken("b"), token)
		reported := func(status int, header ...string) (ration.Grant, error) {
			base := rationtest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				sent++
				return rationtest.Respond(r, status, "", header), nil
			})
			tr := &ration.Transport{Base: base, Pool: other}
			req := rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil)
			resp, err := tr.RoundTrip(req.WithContext(ration.WithCost(ration.WithGrant(ctx, text), 2)))
			if err != nil {
				return ration.Grant{}, err
			}
			require.Equal(t, status, resp.StatusCode)
			again, found := ration.GrantOf(resp)
			require.True(t, found)
			return again, nil
		}
		again, err := reported(http.StatusOK)
		require.NoError(t, err)
		require.Equal(t, []any{token.ID(), 2, grant.Slot.UnixMicro()}, []any{again.Token.ID(), again.Cost, again.Slot.UnixMicro()})
		require.Equal(t, []int{2, 50, 2}, used(), "nothing was booked again")
		require.NoError(t, again.Settle(t.Context(), map[string]int{"tokens": 7}))
		require.Equal(t, []int{2, 7, 2}, used())
		sent = 0
		_, err = reported(http.StatusTooManyRequests, "Retry-After", "60")
		require.NoError(t, err)
		require.Equal(t, 1, sent, "a grant is good for one request")
		time.Sleep(2 * time.Second)
		u, err := b.Usage(ctx, token)
		require.NoError(t, err)
		require.NotEmpty(t, u.Pauses, "the fleet hears of it")

		for _, wrong := range []string{"", "x", "e30", string(text[1:])} {
			_, err := (&ration.Transport{Pool: other}).RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil).WithContext(ration.WithGrant(ctx, []byte(wrong))))
			require.ErrorContains(t, err, "WithGrant", "%q", wrong)
		}
		other.Remove(token)
		_, err = reported(http.StatusOK)
		require.ErrorContains(t, err, "the pool has no token")
		_, err = ration.Grant{}.MarshalText()
		require.Error(t, err)
	})
}
