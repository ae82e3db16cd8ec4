package rates

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// What failed is counted exactly, by account, endpoint and class, for a minute.
func TestFailingCountsAMinute(t *testing.T) {
	var f Failing
	begun := time.Unix(1_772_366_400, 0)
	for ms := 0; ms < 90_000; ms += 20 {
		now := begun.Add(time.Duration(ms) * time.Millisecond)
		f.Note("a", "GET https://api.test/users/*", class401, now)
		if ms%100 == 0 {
			f.Note("b", "GET https://api.test/users/*", class5xx, now)
		}
		if ms%1000 == 0 {
			f.Note("b", "POST https://api.test/users", class5xx, now)
		}
	}
	now := begun.Add(90*time.Second - time.Millisecond)
	all := []store.FailedAnswers{
		{Account: "a", Endpoint: "GET https://api.test/users/*", Class: "401", Count: 3000},
		{Account: "b", Endpoint: "GET https://api.test/users/*", Class: "5xx", Count: 600},
		{Account: "b", Endpoint: "POST https://api.test/users", Class: "5xx", Count: 60},
	}
	require.Equal(t, all, f.Last(now))
	for i := range all {
		all[i].Count /= 2
	}
	require.Equal(t, all, f.Last(now.Add(30*time.Second)))
	require.Empty(t, f.Last(now.Add(time.Minute)))

	for i := range 10_000 {
		f.Note(fmt.Sprint(i), "GET /", class429, now)
	}
	require.LessOrEqual(t, f.last.Len(), mostFailed)
	require.Len(t, f.Last(now), mostFailedTold)
}
