package rationprom_test

import (
	"net/http"
	"testing"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/rationprom"
)

// What counting costs a request that waits for nothing:
//
//	go test -bench Request -benchmem
func BenchmarkRequest(b *testing.B) {
	m := rationprom.New(rationprom.Options{Budgets: []string{"api"}})
	for name, counted := range map[string]bool{"alone": false, "counted": true} {
		b.Run(name, func(b *testing.B) {
			budget := newBudget(m, ration.Limit{Max: 1_000_000_000, Window: 1_000_000, Algorithm: ration.SlidingWindow})
			if !counted {
				budget.Trace, budget.OnEvent = nil, nil
			}
			api := roundTripper(func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
			})
			tr := &ration.Transport{Base: api, Pool: ration.NewPool(budget, ration.NewToken("a"))}
			req, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := tr.RoundTrip(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
