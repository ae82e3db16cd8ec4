package simulated

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompetitorSpendsTheSameQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limit: 5, Window: 10 * time.Second, Tokens: []string{"one", "two"}}
		require.Equal(t, 3, p.Spend("one", 3))
		require.Zero(t, p.Spend("unknown", 3))
		start := time.Now()
		time.Sleep(time.Second)
		require.Equal(t, "1", call(p, firstPage, "one").Header().Get("X-Ratelimit-Remaining"))
		require.Equal(t, "4", call(p, firstPage, "two").Header().Get("X-Ratelimit-Remaining"))
		require.Equal(t, 1, p.Spend("one", 4))
		require.Equal(t, 429, call(p, firstPage, "one").Code)
		time.Sleep(9 * time.Second)
		require.Equal(t, 200, call(p, firstPage, "one").Code, "the competitor's first 3 count no more")

		report := p.Report()
		require.Equal(t, start, report.Start)
		one := report.Tokens[0]
		require.Equal(t, []int{2, 1, 4, 3}, []int{one.Accepted, one.Refused, one.ExternalAccepted, one.ExternalRefused})
		require.Equal(t, []int{3, 1, 4, 3}, []int{report.Accepted, report.Refused, report.ExternalAccepted, report.ExternalRefused})
		require.Equal(t, 5, one.MaxInWindow)
		require.Equal(t, start.Add(time.Second), one.First, "not the competitor's")
		require.Zero(t, report.Unauthorised)
	})
}

func TestCompetitorIsJudgedLikeAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Dialect: githubDialect{}, SecondaryLimit: 2, RefuseFirst: 1}
		require.Equal(t, 2, p.Spend("one", 5))
		require.Equal(t, 403, callAs(p, firstPage, "one").Code, "the first that is not the competitor's is refused")
		time.Sleep(time.Second)
		require.NoError(t, p.Block("one", time.Second, KindDead))
		require.Zero(t, p.Spend("one", 1))
		report := p.Report().Tokens[0]
		require.Equal(t, []int{2, 4}, []int{report.ExternalAccepted, report.ExternalRefused})
		require.Equal(t, []int{0, 0, 1}, []int{report.Refused, report.Secondary, report.Injected})
		require.Empty(t, report.Blocked)
	})
}

// runFor runs a competitor for d.
func runFor(s *Competitor, d time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	s.Run(ctx)
}

func TestCompetitorSpendsItsShareEvenly(t *testing.T) {
	for _, row := range []struct {
		limit int
		share float64
		calls []int // after each second of 5, of a quota for 5 s
	}{
		{500, 0.3, []int{30, 60, 90, 120, 150}},
		{500, 1.5, []int{150, 300, 450, 500, 500}},
		{5000, 0.4, []int{400, 800, 1200, 1600, 2000}}, // several at once
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &Provider{Limit: row.limit, Window: 5 * time.Second, Tokens: []string{"one", "two"}}
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { (&Competitor{Provider: p, Tokens: p.Tokens, Share: row.share}).Run(ctx) })
			for _, want := range row.calls {
				time.Sleep(time.Second)
				synctest.Wait()
				for _, token := range p.Report().Tokens {
					require.InDelta(t, want, token.ExternalAccepted, 1, "share %v", row.share)
				}
			}
			stop()
			running.Wait()
		})
	}
}

func TestCompetitorWithoutAShareDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Provider)
		runFor(&Competitor{Provider: p, Tokens: []string{"one"}}, time.Hour)
		require.Empty(t, p.Report().Tokens)
	})
}

func TestCompetitorIdlesWhenNobodyElseCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Provider{Limit: 100, Window: 10 * time.Second}
		s := &Competitor{Provider: p, Tokens: []string{"one"}, Share: 0.5, Idle: time.Second}
		spent := func() int {
			report := p.Report()
			if len(report.Tokens) == 0 {
				return 0
			}
			return report.ExternalAccepted
		}
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		running.Go(func() { s.Run(ctx) })
		time.Sleep(5*time.Second + 1)
		require.Zero(t, spent(), "nobody has called yet")
		call(p, firstPage, "two")
		time.Sleep(5 * time.Second)
		require.Equal(t, 5, spent(), "a call each 200 ms, as long as the other was less than a second ago")
		call(p, firstPage, "two")
		time.Sleep(900 * time.Millisecond)
		require.Equal(t, 9, spent(), "what it left out is not made up for")
		stop()
		running.Wait()
	})
}
