package ration_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// Two workers that learn different limits at the same time raise the same revision. One
// takes the other's, and no caller hears of it.
func TestWhoLearnsAtTheSameTimeYields(t *testing.T) {
	inBubbles(t, func(t *testing.T, ours *ration.Budget) {
		ours.Limits = []ration.Limit{ration.PerHour(5000)}
		theirs := &ration.Budget{Name: ours.Name, Limits: ours.Limits, Store: ours.Store, Margin: ours.Margin}
		theirs.SetClock(time.Now)
		var clients []*http.Client
		for i, b := range []*ration.Budget{ours, theirs} {
			limit := 6000 + 1000*i
			api := newProvider(telling(func(n int) []string { return instagram(limit, limit-n) }))
			clients = append(clients, &http.Client{Transport: &ration.Transport{Base: api, Provider: preset(t, "instagram"),
				Pool: ration.NewPool(b, ration.NewToken("a"))}})
		}
		for range 8 {
			for _, client := range clients {
				require.Equal(t, http.StatusOK, get(t, client, "http://api.test/"+strconv.Itoa(1)).StatusCode)
			}
		}
	})
}
