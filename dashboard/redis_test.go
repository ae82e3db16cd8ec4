package dashboard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/dashboard"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// Of a real Redis the page has the numbers that Usage has, each action does what it says, and no secret
// is anywhere.
func TestThePageOfARealStore(t *testing.T) {
	testkit.Slow(t)
	const secret = "sentinel-secret-0123456789"
	kept := &ration.RedisStore{Client: redistest.Start(t).Client(t)}
	budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(100), ration.PerDay(1000)}, Store: kept}
	token := ration.NewToken(secret)
	token.Label = "ann"
	for range 7 {
		_, err := budget.Wait(t.Context(), token, 3)
		require.NoError(t, err)
	}
	h := &dashboard.Handler{Store: kept, Actions: true}
	usage, err := budget.Usage(t.Context(), token)
	require.NoError(t, err)
	r := local(http.MethodGet, "/b/api", nil)
	r.Header.Set("Accept", "application/json")
	var shown struct {
		Accounts []struct {
			Label  string
			Limits []struct{ Used, Remaining int }
		}
	}
	require.NoError(t, json.Unmarshal(answer(h, r).Body.Bytes(), &shown))
	require.Equal(t, "ann", shown.Accounts[0].Label)
	for i, l := range usage.Limits {
		require.Equal(t, 21, l.Used)
		require.Equal(t, l.Used, shown.Accounts[0].Limits[i].Used)
		require.Equal(t, l.Remaining, shown.Accounts[0].Limits[i].Remaining)
	}

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	first, second := watch(ctx, h, "/b/api"), watch(ctx, h, "/b/api/a/"+token.AccountID())
	eventually := func(v *viewer, want string) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			event, _ := v.last()
			assert.Contains(c, event, want)
		}, 10*time.Second, 10*time.Millisecond)
	}
	eventually(first, `<td class="n">21</td>`)
	eventually(second, "21 used, 0 booked ahead, 79 left of 100")
	act(t, h, "/b/api/do/pause", map[string]string{"account": token.AccountID(), "for": "1h", "reason": "for a look"})
	eventually(first, "for a look, at the dashboard")
	eventually(second, "ann paused")
	_, err = budget.Try(t.Context(), token, 1)
	require.ErrorIs(t, err, ration.ErrExhausted)
	act(t, h, "/b/api/do/resume", map[string]string{"account": token.AccountID()})
	_, err = budget.Try(t.Context(), token, 1)
	require.NoError(t, err)
	eventually(second, "22 used")
	act(t, h, "/b/api/do/forget", map[string]string{"account": token.AccountID()})
	usage, err = budget.Usage(t.Context(), token)
	require.NoError(t, err)
	require.Zero(t, usage.Limits[0].Used)
	for _, v := range []*viewer{first, second} {
		v.mu.Lock()
		for _, one := range v.shown {
			require.NotContains(t, one, secret)
		}
		v.mu.Unlock()
	}
}

// act answers the question that an action asks.
func act(t *testing.T, h http.Handler, address string, fields map[string]string) {
	t.Helper()
	form := formOf(t, h, address+"?account="+fields["account"])
	for name, value := range fields {
		form.Set(name, value)
	}
	w := answer(h, local(http.MethodPost, address, form))
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
}
