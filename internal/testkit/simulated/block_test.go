package simulated

import (
	"encoding/json"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBlockedCallsAreReportedWithTheirArrivals makes a call with each of two tokens each second, and blocks one of them.
func TestBlockedCallsAreReportedWithTheirArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limit: 100, Tokens: []string{"one", "two"}}
		start := time.Now()
		var got []int
		for second := range 8 {
			if second == 2 {
				require.NoError(t, p.Block("one", 3*time.Second, KindDead))
			}
			got = append(got, call(p, firstPage, "one").Code, call(p, firstPage, "two").Code)
			time.Sleep(time.Second)
		}
		// From 2 s on, and no more at 5 s sharp.
		require.Equal(t, []int{200, 200, 200, 200, 400, 200, 400, 200, 400, 200, 200, 200, 200, 200, 200, 200}, got)
		report := p.Report()
		at := func(second int) BlockedCall {
			return BlockedCall{KindDead, start.Add(time.Duration(second) * time.Second)}
		}
		require.Equal(t, []BlockedCall{at(2), at(3), at(4)}, report.Tokens[0].Blocked)
		require.Empty(t, report.Tokens[1].Blocked)
		require.Equal(t, []int{13, 3, 0}, []int{report.Accepted, report.Injected, report.Refused})
		require.Equal(t, 5, report.Tokens[0].MaxInWindow, "they count against nothing")

		var sent Report
		require.NoError(t, json.Unmarshal(call(p, "http://example.com"+ReportPath, "").Body.Bytes(), &sent))
		require.Len(t, sent.Tokens[0].Blocked, 3)
		require.True(t, sent.Tokens[0].Blocked[2].At.Equal(at(4).At))
		require.Equal(t, KindDead, sent.Tokens[0].Blocked[2].Kind)
	})
}

func TestBlockOfAnAppRefusesEveryToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Dialect: metaDialect{}, Tokens: []string{"one", "two"}}
		require.NoError(t, p.Block("", time.Minute, KindApp))
		for _, token := range p.Tokens {
			require.Equal(t, 403, callAs(p, firstPage, token).Code)
		}
		require.NoError(t, p.Block("one", time.Hour, KindQuota))
		require.Equal(t, 403, callAs(p, firstPage, "one").Code, "the block of all tokens comes first")
		time.Sleep(time.Minute)
		require.Equal(t, 400, callAs(p, firstPage, "one").Code)
		require.Equal(t, 200, callAs(p, firstPage, "two").Code)
		kinds := []Kind{}
		for _, one := range p.Report().Tokens[0].Blocked {
			kinds = append(kinds, one.Kind)
		}
		require.Equal(t, []Kind{KindApp, KindApp, KindQuota}, kinds)
	})
}

func TestBlockTakesThePlaceOfTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Dialect: githubDialect{}}
		require.NoError(t, p.Block("one", time.Hour, KindDead))
		require.Equal(t, 401, callAs(p, firstPage, "one").Code)
		require.NoError(t, p.Block("one", time.Minute, KindSecondary))
		require.Equal(t, 403, callAs(p, firstPage, "one").Code)
		time.Sleep(time.Minute)
		require.Equal(t, 200, callAs(p, firstPage, "one").Code)
		require.NoError(t, p.Block("one", time.Hour, KindDead))
		require.NoError(t, p.Block("one", 0, KindDead))
		require.Equal(t, 200, callAs(p, firstPage, "one").Code)
	})
}

// TestBlockIsForCallsThatArriveInIt judges a call after the block began that arrived before.
func TestBlockIsForCallsThatArriveInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Provider)
		arrived := time.Now()
		time.Sleep(time.Nanosecond)
		require.NoError(t, p.Block("one", time.Second, KindQuota))
		require.Equal(t, accepted, p.judge("one", arrived, true).outcome)
		require.Equal(t, injected, p.judge("one", arrived.Add(time.Second), true).outcome)
		require.Equal(t, accepted, p.judge("one", arrived.Add(time.Second+1), true).outcome)
	})
}

func TestBlockedCallsCountOnlyByChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			p    *Provider
			left string
		}{
			{&Provider{Limit: 3}, "2"},
			{&Provider{Limit: 3, CountRefused: true}, "0"},
		} {
			require.NoError(t, row.p.Block("one", time.Second, KindQuota))
			for range 2 {
				require.Equal(t, 429, call(row.p, firstPage, "one").Code)
			}
			time.Sleep(time.Second)
			require.Equal(t, row.left, call(row.p, firstPage, "one").Header().Get("X-Ratelimit-Remaining"))
		}
	})
}

// TestResetOfAnUntouchedQuotaIsAWindowAway refuses the first call of all, and the first after a window has passed.
func TestResetOfAnUntouchedQuotaIsAWindowAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Dialect: githubDialect{}, Limit: 3, Window: time.Minute}
		for range 2 {
			require.NoError(t, p.Block("one", time.Second, KindSecondary))
			h := callAs(p, firstPage, "one").Header()
			require.Equal(t, "3", h.Get("X-RateLimit-Remaining"))
			require.Equal(t, strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10), h.Get("X-RateLimit-Reset"))
			time.Sleep(time.Second)
			require.Equal(t, 200, callAs(p, firstPage, "one").Code)
			time.Sleep(2 * time.Minute)
		}
	})
}

func TestDeadTokenGetsNoRetryAfter(t *testing.T) {
	p := &Provider{Dialect: githubDialect{}, SendRetryAfter: true}
	require.NoError(t, p.Block("one", time.Hour, KindDead))
	require.Empty(t, callAs(p, firstPage, "one").Header().Get("Retry-After"))
	require.NoError(t, p.Block("one", time.Hour, KindQuota))
	require.Equal(t, "3600", callAs(p, firstPage, "one").Header().Get("Retry-After"))
}

func TestBlockNamesWhatThereIs(t *testing.T) {
	p := &Provider{Tokens: []string{"one"}}
	require.EqualError(t, p.Block("one", time.Second, "secondry"), `there is no block of kind "secondry": there are quota, secondary, dead and app`)
	require.EqualError(t, p.Block("another", time.Second, KindDead), `a block of kind "dead" is for an unknown token: name one of Provider.Tokens`)
	require.NoError(t, p.Block("another", time.Second, KindApp))
}
