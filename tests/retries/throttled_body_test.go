package retries_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"testing/synctest"
	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

func TestBodyIsRetriedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []*rationtest.Body
		api := rationtest.NewAPI(rationtest.KeepBodies(&answers, rationtest.Throttling(2, "Retry-After", "60")))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(9)), ration.NewToken("a"))}
		again := &rationtest.Bodies{Content: "content \x00\xff"}
		first := rationtest.NewBody(again.Content)
		req := rationtest.NewRequest(t, http.MethodPost, "http://api.test/", first)
		req.GetBody = again.Get
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, "welcome", rationtest.Drain(t, resp))
		for _, c := range api.Calls() {
			require.Equal(t, again.Content, c.Body)
		}
		require.Equal(t, rationtest.Seconds(0, 60, 120), api.Times())
		require.Equal(t, 1, first.Closed)
		require.Len(t, again.Made, 2, "no more than are sent")
		for _, b := range again.Made {
			require.Equal(t, 1, b.Closed)
		}
		for _, b := range answers {
			require.Equal(t, 1, b.Closed)
		}
	})
}

func TestNoBodyNeedsNoGetBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "60"))
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(9)), ration.NewToken("a"))}}
		req := rationtest.NewRequest(t, http.MethodPost, "http://api.test/", http.NoBody)
		req.GetBody = nil
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
	})
}

// A caller that cannot be served in time has the provider's answer at once, to
// read in full.
func TestProvidersAnswerIsReturnedIfTheNextSlotIsTooLate(t *testing.T) {
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
				var answers []*rationtest.Body
				budget := rationtest.NewBudget(ration.PerHour(9))
				row.change(budget)
				pool := ration.NewPool(budget, token)
				refuse := rationtest.Throttling(100, "Retry-After", "60")
				api := rationtest.NewAPI(rationtest.KeepBodies(&answers, func(n int, req *http.Request) (*http.Response, error) {
					row.during(pool)
					return refuse(n, req)
				}))
				transport := &ration.Transport{Base: api, Pool: pool}
				ctx, stop := row.ctx(t.Context())
				defer stop()
				again := &rationtest.Bodies{Content: "content"}
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/", rationtest.NewBody("content"))
				require.NoError(t, err)
				req.GetBody = again.Get
				resp, err := transport.RoundTrip(req)
				require.NoError(t, err)
				require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
				require.Equal(t, 1, answers[0].Closed, "it holds no connection, and is read all the same")
				require.Equal(t, "slow down", rationtest.Drain(t, resp))
				require.Zero(t, time.Since(api.Begun))
				for _, b := range again.Made {
					require.Equal(t, 1, b.Closed)
				}
				_, found := ration.GrantOf(resp)
				require.True(t, found)
			})
		})
	}
}

// While a request waits, its throttled response holds no connection.
func TestAThrottledBodyIsClosedBeforeThePause(t *testing.T) {
	for _, body := range []string{"", `{"error":"slow down"}`} {
		synctest.Test(t, func(t *testing.T) {
			first, once := rationtest.NewBody(body), rationtest.ThrottlingOnce(http.StatusTooManyRequests, body, "Retry-After", "60")
			api := rationtest.NewAPI(func(n int, req *http.Request) (*http.Response, error) {
				resp, err := once(n, req)
				if n == 1 {
					resp.Body = first
				}
				return resp, err
			})
			client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(9)), ration.NewToken("a"))}}
			var waits sync.WaitGroup
			waits.Go(func() { require.Equal(t, http.StatusOK, rationtest.Get(t, client, "http://api.test/").StatusCode) })
			synctest.Wait()
			require.Equal(t, 1, first.Closed)
			waits.Wait()
			require.Equal(t, 1, first.Closed)
		})
	}
}

func TestCancelWhileAPauseLastsClosesTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []*rationtest.Body
		api := rationtest.NewAPI(rationtest.KeepBodies(&answers, rationtest.Throttling(100, "Retry-After", "60")))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(9)), ration.NewToken("a"))}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		again := &rationtest.Bodies{Content: "content"}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/", rationtest.NewBody("content"))
		require.NoError(t, err)
		req.GetBody = again.Get
		resp, err := transport.RoundTrip(req)
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, resp)
		require.Equal(t, 10*time.Second, time.Since(api.Begun))
		require.Len(t, api.Calls(), 1)
		require.Equal(t, 1, answers[0].Closed)
		for _, b := range again.Made {
			require.Equal(t, 1, b.Closed)
		}
	})
}

// A line that breaks on the second try is an error like any other, and nothing
// stays open.
func TestFailureOfTheSecondTryClosesTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []*rationtest.Body
		broken := errors.New("the line broke")
		refuse := rationtest.Throttling(1, "Retry-After", "60")
		api := rationtest.NewAPI(rationtest.KeepBodies(&answers, func(n int, req *http.Request) (*http.Response, error) {
			if n == 2 {
				return nil, broken
			}
			return refuse(n, req)
		}))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(9)), ration.NewToken("a"))}
		resp, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", strings.NewReader("content")))
		require.ErrorIs(t, err, broken)
		require.Nil(t, resp)
		require.Equal(t, 1, answers[0].Closed)
	})
}
