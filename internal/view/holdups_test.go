package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

func fleet(now time.Time, accounts int) store.Description {
	d := store.Description{Budget: "api", Now: now}
	for i := range accounts {
		d.Accounts = append(d.Accounts, store.DescribedAccount{Label: fmt.Sprint("user-", i), Usage: store.Usage{Account: fmt.Sprintf("%032d", i), Now: now,
			Limits: []store.LimitUsage{store.NewLimitUsage(ration.PerMinute(10), 3, 0, now)}}})
	}
	return d
}

func refusal(n int) string {
	return fmt.Sprintf("429 Too Many Requests from GET https://api.test/likes/%d, which asks for %ds (told by crawler-%d, process 7)", n, 60-n, n)
}

// What a refusal of one endpoint has paused is one, of whatever account and object; another cause is another.
func TestHoldupsOfOneCauseAreOne(t *testing.T) {
	now := time.Now()
	d := fleet(now, 4)
	for i := range 3 {
		d.Pauses = append(d.Pauses, store.Pause{Account: d.Accounts[i].Account, Until: now.Add(time.Minute - time.Duration(i)*time.Second), Cause: refusal(i + 1)})
	}
	d.Pauses = append(d.Pauses, store.Pause{Account: d.Accounts[3].Account, Until: now.Add(time.Second), Cause: "a test"})
	for i := range d.Accounts {
		d.Accounts[i].PausedUntil = d.Pauses[i].Until
	}
	all := view.Holdups(&d, "")
	require.Len(t, all, 2)
	require.Equal(t, "3 of 4 accounts paused", all[0].What)
	require.Equal(t, " for 1m more", all[0].For(now))
	require.Equal(t, "429 Too Many Requests from GET https://api.test/likes/* (first told by crawler-1, process 7)", all[0].Cause)
	require.Equal(t, "GET https://api.test/likes/*", all[0].Endpoint)
	require.True(t, all[0].Stalls)
	require.Equal(t, "user-3 paused", all[1].What)
	require.Equal(t, "4 paused", view.Summarize(&d).String())
	d.Pauses = d.Pauses[:1]
	for i := range d.Accounts[1:] {
		d.Accounts[1+i].PausedUntil = time.Time{}
	}
	require.False(t, view.Holdups(&d, "")[0].Stalls)
	require.Equal(t, refusal(1), view.Holdups(&d, "")[0].Cause, "of one all is said")
}

// Parts that are paused hold back none of the rest.
func TestPausesOfParts(t *testing.T) {
	now := time.Now()
	d := fleet(now, 4)
	for i := range 3 {
		d.Pauses = append(d.Pauses, store.Pause{Account: d.Accounts[i].Account, Key: "endpoint1", Until: now.Add(time.Minute), Cause: refusal(i)})
	}
	all := view.Holdups(&d, "")
	require.Len(t, all, 1)
	require.Equal(t, "part endpoint1 of 3 of 4 accounts paused", all[0].What)
	_, command := all[0].Cure("api")
	require.Equal(t, "ration resume api -endpoint 'GET https://api.test/likes/*'", command, "and not all of the budget")
	require.Equal(t, "4 free", view.Summarize(&d).String())

	key, err := view.EndpointKey("get https://api.test/likes/9")
	require.NoError(t, err)
	require.Equal(t, d.Pauses, view.PartsOf(&d, "", key), "which were refused by that endpoint")
	require.Equal(t, d.Pauses[1:2], view.PartsOf(&d, d.Accounts[1].Account, key))
	d.Pauses[1].Key = "endpoint2"
	require.Equal(t, "a part of 3 of 4 accounts paused", view.Holdups(&d, "")[0].What)
	for i := range d.Pauses {
		d.Pauses[i].Key = key
	}
	require.Equal(t, "an endpoint of 3 of 4 accounts paused", view.Holdups(&d, "")[0].What)
	d.Pauses[2].Account = d.Pauses[0].Account
	d.Pauses[2].Key = "object"
	require.Equal(t, "3 parts of 2 of 4 accounts paused", view.Holdups(&d, "")[0].What)

	// A scope is more than the endpoint by whose refusal it was found.
	d.Pauses = []store.Pause{{Account: d.Accounts[0].Account, Key: "scope0123456789abcdef", Until: now.Add(time.Minute), Cause: refusal(1)}}
	all = view.Holdups(&d, "")
	require.Equal(t, "a scope of user-0 paused", all[0].What)
	_, command = all[0].Cure("api")
	require.Equal(t, "ration resume api 000000000000 -endpoint scope0123456789abcdef", command)
	require.Empty(t, view.PartsOf(&d, "", key))

	// Of what somebody has paused the key alone is known.
	d.Pauses = []store.Pause{{Key: "endpoint1", Cause: "a test"}, {Key: "endpoint2", Cause: "a test"}, {Account: d.Accounts[0].Account, Key: "endpoint2", Cause: "a test"}}
	all = view.Holdups(&d, "")
	require.Len(t, all, 3)
	for i, want := range []string{"ration resume api 000000000000 -endpoint endpoint2", "ration resume api -endpoint endpoint1", "ration resume api -endpoint endpoint2"} {
		_, command = all[i].Cure("api")
		require.Equal(t, want, command)
	}
	_, err = view.ResumeParts(t.Context(), nil, &d, "", "endpoint3")
	require.ErrorContains(t, err, "no pause of that endpoint is in force")
}

// A token is quarantined until it is served, also when no quarantine is in force.
func TestTheStateOfAnAccount(t *testing.T) {
	now := time.Now()
	d := fleet(now, 1)
	of := func() (string, string, time.Duration) {
		state, words, until := view.StateOf(&d, d.Accounts[0], d.Accounts[0].Limits[0])
		if until.IsZero() {
			return state.String(), words, 0
		}
		return state.String(), words, until.Sub(now)
	}
	demand := func(state, words string, next time.Duration) {
		t.Helper()
		gotState, gotWords, gotNext := of()
		require.Equal(t, []any{state, words, next}, []any{gotState, gotWords, gotNext})
	}
	demand("free", "free", 0)
	d.Accounts[0].Limits[0].Remaining, d.Accounts[0].Limits[0].FreeAt = 0, now.Add(time.Second)
	demand("spent", "spent", time.Second)
	d.Pauses = []store.Pause{{Until: now.Add(time.Minute)}}
	d.Accounts[0].PausedUntil = now.Add(time.Minute)
	demand("paused", "paused", time.Minute)
	d.Quarantined = []store.Quarantine{{Token: d.Accounts[0].Account, Reason: "dead_token", Count: 5, Until: now.Add(3 * time.Second)}}
	demand("quarantined", "dead_token, tried 5 times", 3*time.Second)
	d.Quarantined[0].Until = now.Add(-time.Second)
	demand("quarantined", "dead_token, tried 5 times", 0)
	require.Contains(t, view.Holdups(&d, "")[1].What, "token user-0 quarantined (dead_token, tried 5 times)")
	require.Equal(t, ", tried again now", view.Holdups(&d, "")[1].For(now))
	for budget, word := range map[string]string{"api": "api", "my API": "'my API'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "-h": "'-h'"} {
		what, command := view.Holdups(&d, "")[0].Cure(budget)
		require.Equal(t, "to end it: ration resume "+word, what+": "+command)
	}
}

// What begins by one cause is one piece of news.
func TestNewsOfOneCauseAreOne(t *testing.T) {
	now := time.Now()
	d := fleet(now, 4)
	var news view.News
	news.Take([]store.Description{d}, now)
	for i := range 3 {
		d.Pauses = append(d.Pauses, store.Pause{Account: d.Accounts[i].Account, Until: now.Add(time.Minute), Cause: refusal(i)})
	}
	d.Workers = append(d.Workers, store.Worker{ID: "w", Seen: now, Load: store.Load{Process: store.Process{Error: "its limits are not the fleet's"}}}) // no news each time
	news.Take([]store.Description{d}, now)
	news.Take([]store.Description{d}, now)
	require.Len(t, news.Told, 1)
	require.Equal(t, "3 of 4 accounts paused", news.Told[0].What)
	require.True(t, news.Told[0].Concerns(d.Accounts[2].Account))
	require.False(t, news.Told[0].Concerns(d.Accounts[3].Account))
	require.True(t, news.Told[0].IsRefusal())
}

// What a process that has ended did last is not shown.
func TestASilentWorkerWaitsForNothing(t *testing.T) {
	now := time.Now()
	d := fleet(now, 1)
	load := store.Load{Waiting: map[string]int{"quota": 8}, InFlight: 1}
	d.Workers = []store.Worker{{ID: "a", Seen: now.Add(-40 * time.Second), Load: load}, {ID: "b", Seen: now, Load: load}}
	s := view.Summarize(&d)
	require.Equal(t, "1 free; 8 waiting for quota", s.String())
	require.Equal(t, 1, s.InFlight)
}
