package retries_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// An overloaded API counts a sliding window as it says, and answers every call of an incident with a bare 429.
type overloadedAPI struct {
	limit    ration.Limit
	after    int // so many calls are served before the incident
	incident time.Duration

	mu     sync.Mutex // protects all below
	until  time.Time  // when the incident ends; zero: it has not begun
	counts []time.Time
	served []time.Time
	excess int // calls beyond the limit
}

func (p *overloadedAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(50 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for len(p.counts) > 0 && !p.counts[0].After(now.Add(-p.limit.Window)) {
		p.counts = p.counts[1:]
	}
	status := http.StatusTooManyRequests
	if p.until.IsZero() && len(p.served) >= p.after {
		p.until = now.Add(p.incident)
	}
	switch {
	case now.Before(p.until):
	case len(p.counts) >= p.limit.Max:
		p.excess++
	default:
		status = http.StatusOK
		p.counts, p.served = append(p.counts, now), append(p.served, now)
	}
	return rationtest.Respond(req, status, "", nil), nil
}

// The limits are right. Refusals of an overloaded API that say nothing cost the fleet what they last, and little more,
// though they look like limits that are too high.
func TestAShortIncidentCostsAShortTime(t *testing.T) {
	const windows = 10 // of which one may lie half in the time that is looked at: its calls come in one burst
	for _, row := range []struct {
		limit    ration.Limit
		incident time.Duration
		settled  time.Duration // behind the incident
	}{
		{ration.PerMinute(60), 10 * time.Second, 5 * time.Minute},
		{ration.PerMinute(60), time.Minute, 20 * time.Minute},
		{ration.PerHour(1000), 20 * time.Second, time.Hour},
		{ration.PerHour(1000), time.Minute, time.Hour},
		{ration.PerHour(1000), 5 * time.Minute, 2 * time.Hour},
		{ration.PerDay(5000), time.Minute, 24 * time.Hour},
	} {
		for _, after := range []int{row.limit.Max / 5, row.limit.Max * 19 / 10} {
			synctest.Test(t, func(t *testing.T) {
				api := &overloadedAPI{limit: row.limit, after: after, incident: row.incident}
				b := &ration.Budget{Name: "b", Limits: []ration.Limit{row.limit}, Store: new(ration.MemoryStore)}
				client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, ration.NewToken("a"))}}
				ends := time.Now().Add(row.incident + row.settled + (windows+2)*row.limit.Window)
				var callers sync.WaitGroup
				for range 8 {
					callers.Go(func() {
						for time.Now().Before(ends) {
							resp, err := client.Get("http://api.test/")
							if err != nil {
								t.Error(err)
								return
							}
							rationtest.Drain(t, resp)
						}
					})
				}
				callers.Wait()
				from := api.until.Add(row.settled)
				ends = from.Add(windows * row.limit.Window)
				served := 0
				for _, at := range api.served {
					if !at.Before(from) && at.Before(ends) {
						served++
					}
				}
				used := float64(served) / float64((windows-1)*row.limit.Max)
				t.Logf("%v, refused for %v after %d calls: from %v on %.1f %% of nine windows are used in ten; %d calls beyond the limit", row.limit, row.incident, after, row.settled, 100*used, api.excess)
				require.GreaterOrEqual(t, used, 1.0)
				require.Zero(t, api.excess)
			})
		}
	}
}
