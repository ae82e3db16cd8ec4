package simulated

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSecondaryLimitHoldsBesideTheQuota allows 3 calls in a second and 6 in a minute. A call that the secondary limit
// refuses counts against neither.
func TestSecondaryLimitHoldsBesideTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Dialect: githubDialect{}, Limit: 6, Window: time.Minute, SecondaryLimit: 3}
		start := time.Now()
		for i, row := range []struct {
			at        time.Duration
			status    int
			remaining string
			retry     string
		}{
			{0, 200, "5", ""},
			{400 * time.Millisecond, 200, "4", ""},
			{800 * time.Millisecond, 200, "3", ""},
			{900 * time.Millisecond, 403, "3", "1"},
			{time.Second - 1, 403, "3", "1"},
			{time.Second, 200, "2", ""}, // any second has 3
			{1300 * time.Millisecond, 403, "2", "1"},
			{1400 * time.Millisecond, 200, "1", ""},
			{3 * time.Second, 200, "0", ""},
			{3 * time.Second, 403, "0", ""}, // the quota is spent, which goes first
		} {
			time.Sleep(time.Until(start.Add(row.at)))
			w := callAs(p, firstPage, "one")
			require.Equal(t, row.status, w.Code, i)
			require.Equal(t, row.remaining, w.Header().Get("X-RateLimit-Remaining"), i)
			require.Equal(t, row.retry, w.Header().Get("Retry-After"), i)
			if row.retry != "" {
				require.Contains(t, w.Body.String(), "You have exceeded a secondary rate limit")
			} else if row.status != 200 {
				require.Contains(t, w.Body.String(), "API rate limit exceeded for user ID 1.")
			}
		}
		report := p.Report()
		require.Equal(t, []int{6, 4, 3}, []int{report.Accepted, report.Refused, report.Secondary})
		require.Equal(t, 3, report.Tokens[0].Secondary)
	})
}

func TestSpentQuotaGoesBeforeTheSecondaryLimit(t *testing.T) {
	p := &Provider{Dialect: githubDialect{}, Limit: 2, SecondaryLimit: 2}
	for range 2 {
		require.Equal(t, 200, callAs(p, firstPage, "one").Code)
	}
	w := callAs(p, firstPage, "one")
	require.Contains(t, w.Body.String(), "API rate limit exceeded")
	require.Equal(t, "0", w.Header().Get("X-RateLimit-Remaining"))
	require.Zero(t, p.Report().Secondary)
}

func TestSecondaryWindowIsAsLongAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Dialect: githubDialect{}, SecondaryLimit: 1, SecondaryWindow: 10 * time.Second}
		require.Equal(t, 200, callAs(p, firstPage, "one").Code)
		require.Equal(t, 200, callAs(p, firstPage, "two").Code, "of each token")
		time.Sleep(10*time.Second - 1)
		require.Equal(t, 403, callAs(p, firstPage, "one").Code)
		time.Sleep(time.Nanosecond)
		require.Equal(t, 200, callAs(p, firstPage, "one").Code)
	})
}

func TestSecondaryLimitCountsRefusedCallsByChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Dialect: githubDialect{}, SecondaryLimit: 1, CountRefused: true}
		require.Equal(t, 200, callAs(p, firstPage, "one").Code)
		time.Sleep(600 * time.Millisecond)
		require.Equal(t, 403, callAs(p, firstPage, "one").Code)
		time.Sleep(600 * time.Millisecond)
		require.Equal(t, 403, callAs(p, firstPage, "one").Code)
		require.Equal(t, 1, p.Report().Tokens[0].Accepted)
	})
}
