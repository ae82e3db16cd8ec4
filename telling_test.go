package ration_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// counting answers as a provider that has counted so many units before the first
// request, and one for each.
func counting(before, limit int, header func(remaining int) []string) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		return respond(req, http.StatusOK, "", header(limit-before-n)), nil
	}
}

func instagrams(limit int) func(int) []string {
	return func(remaining int) []string {
		return []string{"X-Ratelimit-Limit", strconv.Itoa(limit), "X-Ratelimit-Remaining", strconv.Itoa(remaining)}
	}
}

// What others have spent of a token is owed as soon as an answer tells.
func TestWhatOthersHaveSpentIsOwed(t *testing.T) {
	inBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{ration.PerHour(5000)}
		var notices []ration.Notice
		b.Noticed = func(n ration.Notice) { notices = append(notices, n) }
		token := ration.NewToken("a")
		api := newProvider(counting(1000, 5000, instagrams(5000)))
		client := &http.Client{Transport: &ration.Transport{Base: api, Provider: preset(t, "instagram"), Pool: ration.NewPool(b, token)}}
		get(t, client, "http://api.test/")
		left, err := b.Remaining(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 3999, left)
		require.Len(t, notices, 1)
		require.Equal(t, ration.SpentByOthers, notices[0].Kind)
		require.Equal(t, 1000, notices[0].Count)
		require.Equal(t, token.AccountID(), notices[0].Account)
		get(t, client, "http://api.test/")
		left, err = b.Remaining(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, 3998, left)
		require.Len(t, notices, 1)
	})
}

var _ = fmt.Sprint
var _ = synctest.Wait
var _ = time.Now
