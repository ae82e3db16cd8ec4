package retries_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/provider"
)

// failing answers as it is told, and then 200.
func failing(calls *int, answers ...any) http.RoundTripper {
	return rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		*calls++
		if *calls > len(answers) {
			return rationtest.Respond(req, http.StatusOK, "", nil), nil
		}
		switch answer := answers[*calls-1].(type) {
		case error:
			return nil, answer
		case int:
			return rationtest.Respond(req, answer, "", nil), nil
		}
		return rationtest.Respond(req, http.StatusTooManyRequests, "", []string{"Retry-After", answers[*calls-1].(string)}), nil
	})
}

// What is tried again, how often and after what rest is the policy's, of the Transport or of the request.
func TestThePolicySaysWhatIsTriedAgain(t *testing.T) {
	broken := io.ErrUnexpectedEOF
	second := func() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) }
	for name, row := range map[string]struct {
		policy  ration.RetryPolicy
		method  string
		answers []any
		calls   int
		status  int // 0: the failure
		took    time.Duration
	}{
		"the default":                     {answers: []any{500, 503, broken}, policy: ration.RetryPolicy{Pauses: second}, calls: 4, status: 200, took: 3 * time.Second},
		"no more than Max":                {answers: []any{500, 500, 500}, policy: ration.RetryPolicy{Max: 1, Pauses: second}, calls: 2, status: 500, took: time.Second},
		"never":                           {answers: []any{500}, policy: ration.RetryPolicy{Max: -1}, calls: 1, status: 500},
		"not beyond Within":               {answers: []any{500, 500, 500}, policy: ration.RetryPolicy{Within: 1500 * time.Millisecond, Pauses: second}, calls: 2, status: 500, took: time.Second},
		"a 404 is final":                  {answers: []any{404}, calls: 1, status: 404},
		"but for a policy with 404":       {answers: []any{404, 404}, policy: ration.RetryPolicy{Statuses: []int{404}, Pauses: second}, calls: 3, status: 200, took: 2 * time.Second},
		"a POST may have been done":       {method: http.MethodPost, answers: []any{500}, calls: 1, status: 500},
		"a POST that failed as well":      {method: http.MethodPost, answers: []any{broken}, calls: 1},
		"but for NotIdempotent":           {method: http.MethodPost, answers: []any{500, broken}, policy: ration.RetryPolicy{NotIdempotent: true, Pauses: second}, calls: 3, status: 200, took: 2 * time.Second},
		"pauses that stop give up":        {answers: []any{500, 500}, policy: ration.RetryPolicy{Pauses: func() backoff.BackOff { return &backoff.StopBackOff{} }}, calls: 1, status: 500},
		"what a provider asks is kept":    {answers: []any{"60"}, policy: ration.RetryPolicy{Pauses: second}, calls: 2, status: 200, took: time.Minute},
		"a POST that was not carried out": {method: http.MethodPost, answers: []any{"60"}, calls: 2, status: 200, took: time.Minute},
	} {
		for _, perRequest := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					calls := 0
					b := rationtest.NewBudget(ration.PerHour(100))
					tr := &ration.Transport{Base: failing(&calls, row.answers...), Pool: ration.NewPool(b, ration.NewToken("a")), Retries: row.policy}
					ctx := t.Context()
					if perRequest {
						tr.Retries = ration.RetryPolicy{Max: 9, Statuses: []int{418}}
						ctx = ration.WithRetries(ctx, row.policy)
					}
					req, err := http.NewRequestWithContext(ctx, row.method, "http://api.test/users", strings.NewReader("body"))
					require.NoError(t, err)
					begun := time.Now()
					resp, err := (&http.Client{Transport: tr}).Do(req)
					require.Equal(t, row.calls, calls)
					require.Equal(t, row.took, time.Since(begun))
					if row.status == 0 {
						require.ErrorIs(t, err, broken)
						return
					}
					require.NoError(t, err)
					require.Equal(t, row.status, resp.StatusCode)
				})
			})
		}
	}
}

// A program decides what is done after each refusal, before anything waits.
func TestAProgramDecidesAfterEachRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []ration.Retry
		run := func(decide func(*ration.Retry), answers ...any) (status, calls int, took time.Duration) {
			b := rationtest.NewBudget(ration.PerHour(100))
			policy := ration.RetryPolicy{Decide: func(req *http.Request, r *ration.Retry) {
				require.Equal(t, "/users", req.URL.Path)
				seen = append(seen, *r)
				decide(r)
			}}
			client := &http.Client{Transport: &ration.Transport{Base: failing(&calls, answers...), Pool: ration.NewPool(b, ration.NewToken("a")), Retries: policy}}
			begun := time.Now()
			resp, err := client.Get("http://api.test/users")
			if err == nil {
				status = resp.StatusCode
			}
			return status, calls, time.Since(begun)
		}
		status, calls, took := run(func(r *ration.Retry) { r.Again = r.Pause <= time.Minute }, "3600")
		require.Equal(t, []any{429, 1, time.Duration(0)}, []any{status, calls, took}, "it gives up before an hour's wait")
		require.Equal(t, time.Hour, seen[0].Pause)
		require.Equal(t, provider.ReasonQuota, seen[0].Feedback.Reason)
		require.True(t, seen[0].Again)
		require.Equal(t, 1, seen[0].Attempts)

		status, calls, took = run(func(r *ration.Retry) { r.Wait = 90 * time.Second }, "60", 500)
		require.Equal(t, []any{200, 3}, []any{status, calls})
		require.Equal(t, 3*time.Minute, took, "it rests for longer than is proposed")

		seen = nil
		status, calls, _ = run(func(r *ration.Retry) { r.Again = true }, errors.New("not temporary"), 500)
		require.Equal(t, []any{200, 3}, []any{status, calls})
		require.False(t, seen[0].Again)
		require.EqualError(t, seen[0].Err, "not temporary")
		require.Nil(t, seen[0].Response)
		require.Equal(t, 500, seen[1].Response.StatusCode)

		_, calls, _ = run(func(r *ration.Retry) { r.Again = true }, 500, 500, 500, 500, 500, 500)
		require.Equal(t, 4, calls, "Max holds")
		_, calls, _ = run(func(*ration.Retry) { t.Error("a success is no refusal") }, 404)
		require.Equal(t, 1, calls)
	})
}

func TestStatusesThatCannotBeMeant(t *testing.T) {
	b := rationtest.NewBudget(ration.PerHour(100))
	for _, status := range []int{0, 200, 302, 600} {
		tr := &ration.Transport{Pool: ration.NewPool(b, ration.NewToken("a")), Retries: ration.RetryPolicy{Statuses: []int{status}}}
		_, err := (&http.Client{Transport: tr}).Get("http://api.test/")
		require.ErrorContains(t, err, "Transport.Retries.Statuses")
	}
}
