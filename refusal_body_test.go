package ration_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// bodies makes what GetBody returns, and keeps it.
type bodies struct {
	content string
	made    []*body
	err     error
}

func (b *bodies) get() (io.ReadCloser, error) {
	if b.err != nil {
		return nil, b.err
	}
	made := newBody(b.content)
	b.made = append(b.made, made)
	return made, nil
}

// keepBodies puts bodies that can be asked after into the answers.
func keepBodies(of *[]*body, answer func(int, *http.Request) (*http.Response, error)) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		resp, err := answer(n, req)
		if err == nil {
			content, _ := io.ReadAll(resp.Body)
			kept := newBody(string(content))
			*of, resp.Body = append(*of, kept), kept
		}
		return resp, err
	}
}

func TestBodyIsSentAgainWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []*body
		api := newProvider(keepBodies(&answers, refusing(2, "Retry-After", "60")))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(newBudget(ration.PerHour(9)), ration.NewToken("a"))}
		again := &bodies{content: "content \x00\xff"}
		first := newBody(again.content)
		req := newRequest(t, http.MethodPost, "http://api.test/", first)
		req.GetBody = again.get
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, "welcome", drain(t, resp))
		for _, c := range api.all() {
			require.Equal(t, again.content, c.body)
		}
		require.Equal(t, seconds(0, 60, 120), api.times())
		require.Equal(t, 1, first.closed)
		require.Len(t, again.made, 2, "no more than are sent")
		for _, b := range again.made {
			require.Equal(t, 1, b.closed)
		}
		for _, b := range answers {
			require.Equal(t, 1, b.closed)
		}
	})
}

func TestNoBodyNeedsNoGetBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newProvider(refusing(1, "Retry-After", "60"))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(newBudget(ration.PerHour(9)), ration.NewToken("a"))}}
		req := newRequest(t, http.MethodPost, "http://api.test/", http.NoBody)
		req.GetBody = nil
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
	})
}

// A caller that cannot be served in time has the provider's answer at once, to
// read in full.
func TestProvidersAnswerIsGivenWhereTheNextSlotIsTooLate(t *testing.T) {
	token := ration.NewToken("a")
	for _, row := range []struct {
		name   string
		change func(*ration.Budget)
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		during func(*ration.Pool)
	}{
		{"deadline", func(*ration.Budget) {}, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 30*time.Second)
		}, func(*ration.Pool) {}},
		{"MaxWait", func(b *ration.Budget) { b.MaxWait = 30 * time.Second }, context.WithCancel, func(*ration.Pool) {}},
		{"last token removed", func(*ration.Budget) {}, context.WithCancel, func(p *ration.Pool) { p.Remove(token) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var answers []*body
				budget := newBudget(ration.PerHour(9))
				row.change(budget)
				pool := ration.NewPool(budget, token)
				refuse := refusing(100, "Retry-After", "60")
				api := newProvider(keepBodies(&answers, func(n int, req *http.Request) (*http.Response, error) {
					row.during(pool)
					return refuse(n, req)
				}))
				transport := &ration.Transport{Base: api, Pool: pool}
				ctx, stop := row.ctx(t.Context())
				defer stop()
				again := &bodies{content: "content"}
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/", newBody("content"))
				require.NoError(t, err)
				req.GetBody = again.get
				resp, err := transport.RoundTrip(req)
				require.NoError(t, err)
				require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
				require.Zero(t, answers[0].closed)
				require.Equal(t, "slow down", drain(t, resp))
				require.Zero(t, time.Since(api.begun))
				for _, b := range again.made {
					require.Equal(t, 1, b.closed)
				}
				_, found := ration.GrantOf(resp)
				require.True(t, found)
			})
		})
	}
}

func TestCancelWhileAPauseLastsClosesTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []*body
		api := newProvider(keepBodies(&answers, refusing(100, "Retry-After", "60")))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(newBudget(ration.PerHour(9)), ration.NewToken("a"))}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		again := &bodies{content: "content"}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/", newBody("content"))
		require.NoError(t, err)
		req.GetBody = again.get
		resp, err := transport.RoundTrip(req)
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, resp)
		require.Equal(t, 10*time.Second, time.Since(api.begun))
		require.Len(t, api.all(), 1)
		require.Equal(t, 1, answers[0].closed)
		for _, b := range again.made {
			require.Equal(t, 1, b.closed)
		}
	})
}

// A line that breaks on the second try is an error like any other, and nothing
// stays open.
func TestFailureOfTheSecondTryClosesTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []*body
		broken := errors.New("the line broke")
		refuse := refusing(1, "Retry-After", "60")
		api := newProvider(keepBodies(&answers, func(n int, req *http.Request) (*http.Response, error) {
			if n == 2 {
				return nil, broken
			}
			return refuse(n, req)
		}))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(newBudget(ration.PerHour(9)), ration.NewToken("a"))}
		resp, err := transport.RoundTrip(newRequest(t, http.MethodPost, "http://api.test/", strings.NewReader("content")))
		require.ErrorIs(t, err, broken)
		require.Nil(t, resp)
		require.Equal(t, 1, answers[0].closed)
	})
}
