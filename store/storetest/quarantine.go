package storetest

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// narrowPauseRules are about pauses that move no slot: those with a Key, and quarantined
// tokens.
var narrowPauseRules = []rule{
	{"a pause with a Key moves no slot", func(d *desk) {
		a := d.single(atMost(2, 10*sec))
		d.pauseKey("a", "users", 5*sec, 5*sec)
		d.pauseKey("", "users", 5*sec, 5*sec)
		d.slots(a, 0, 0, 10*sec)
		require.Zero(d.t, d.usage(a)[0].PausedUntil)
	}},
	{"Status lists the pauses with a Key, of one account and of all", func(d *desk) {
		d.pauseKey("a", "users", 5*sec, 5*sec)
		d.pauseKey("b", "users", 6*sec, 6*sec)
		d.pauseKey("", "users", 7*sec, 7*sec)
		d.pauseKey("a", "0123456789abcdef", 8*sec, 8*sec)
		d.pause("a", 9*sec, 9*sec)
		d.pause("", 10*sec, 10*sec)
		d.listed(map[store.Pause]time.Duration{
			{Account: "a", Key: "users"}: 5 * sec, {Account: "b", Key: "users"}: 6 * sec, {Key: "users"}: 7 * sec,
			{Account: "a", Key: "0123456789abcdef"}: 8 * sec, {Account: "a"}: 9 * sec, {}: 10 * sec,
		})
		d.at(8 * sec)
		d.listed(map[store.Pause]time.Duration{{Account: "a"}: 9 * sec, {}: 10 * sec})
	}},
	{"a pause with a Key only lengthens", func(d *desk) {
		d.pauseKey("a", "users", 10*sec, 10*sec)
		d.pauseKey("a", "users", 5*sec, 10*sec)
		d.at(2 * sec)
		d.pauseKey("a", "users", 8*sec, 10*sec)
		d.pauseKey("a", "users", 8*sec+us, 10*sec+us)
		d.at(20 * sec)
		d.pauseKey("a", "users", us, 20*sec+us)
	}},
	{"the ID of an account is never taken for a Key", func(d *desk) {
		long := strings.Repeat("x", 64)
		want := make(map[store.Pause]time.Duration)
		for i, id := range []string{"at-users", "at-0123456789abcdef", "aside-dead-token", "users", "-", "_", long} {
			want[store.Pause{Account: id}] = time.Duration(i+1) * sec
			d.pause(id, time.Duration(i+1)*sec, time.Duration(i+1)*sec)
			want[store.Pause{Account: id, Key: long}] = time.Duration(i+1) * sec
			d.pauseKey(id, long, time.Duration(i+1)*sec, time.Duration(i+1)*sec)
		}
		d.listed(want)
		require.Empty(d.t, d.status().Quarantined)
	}},
	{"a Key is 1 to 64 letters and digits", func(d *desk) {
		for _, key := range []string{" ", "a b", "a-b", "a_b", "a:b", "*", "é", strings.Repeat("x", 65)} {
			_, err := d.store.Pause(d.t.Context(), d.pausing("a", key, sec))
			d.malformed(err, "a pause of %q", key)
		}
		spread := d.pausing("a", "users", sec)
		spread.Apart = us
		_, err := d.store.Pause(d.t.Context(), spread)
		d.malformed(err, "slots that are not moved cannot be apart")
		require.Empty(d.t, d.status().Pauses)
	}},
	{"Status lists the quarantined tokens, for each reason", func(d *desk) {
		d.quarantine("t", "dead", 5*sec, 5*sec)
		d.quarantine("t", "billing", 4*sec, 4*sec)
		d.quarantine("u-v_w", "a-b_c", 9*sec, 9*sec)
		d.quarantined(map[store.Quarantine]time.Duration{
			{Token: "t", Reason: "dead"}: 5 * sec, {Token: "t", Reason: "billing"}: 4 * sec, {Token: "u-v_w", Reason: "a-b_c"}: 9 * sec,
		})
		d.at(5 * sec)
		d.quarantined(map[store.Quarantine]time.Duration{{Token: "u-v_w", Reason: "a-b_c"}: 9 * sec})
		require.Empty(d.t, d.status().Pauses)
	}},
	{"a quarantine moves no slot", func(d *desk) {
		d.quarantine("a", "dead", 5*sec, 5*sec)
		d.slots(d.single(atMost(2, 10*sec)), 0, 0, 10*sec)
	}},
	{"a quarantine only lengthens", func(d *desk) {
		d.quarantine("t", "dead", 10*sec, 10*sec)
		d.quarantine("t", "dead", 5*sec, 10*sec)
		d.quarantine("t", "dead", 11*sec, 11*sec)
		d.at(20 * sec)
		d.quarantine("t", "dead", us, 20*sec+us)
	}},
	{"a malformed quarantine is refused", func(d *desk) {
		for says, spoil := range map[string]func(*store.QuarantineRequest){
			"no token":      func(r *store.QuarantineRequest) { r.Token = "" },
			"a space":       func(r *store.QuarantineRequest) { r.Token = "a b" },
			"a colon":       func(r *store.QuarantineRequest) { r.Token = "a:b" },
			"no reason":     func(r *store.QuarantineRequest) { r.Reason = "" },
			"a long reason": func(r *store.QuarantineRequest) { r.Reason = strings.Repeat("x", 65) },
			"no length":     func(r *store.QuarantineRequest) { r.For = 0 },
			"367 days":      func(r *store.QuarantineRequest) { r.For = 367 * day },
			"before 1970":   func(r *store.QuarantineRequest) { r.Now = time.Unix(-1, 0) },
		} {
			r := d.quarantining("t", "dead", sec)
			spoil(&r)
			_, err := d.store.Quarantine(d.t.Context(), r)
			d.malformed(err, says)
		}
		require.Empty(d.t, d.status().Quarantined)
	}},
	{"the answer tells the Version after a pause and before it", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		d.book(a, 1)
		pause := func(r store.PauseRequest) func() (store.PauseReply, error) {
			return func() (store.PauseReply, error) { return d.store.Pause(d.t.Context(), r) }
		}
		quarantine := func() (store.PauseReply, error) {
			return d.store.Quarantine(d.t.Context(), d.quarantining("t", "dead", sec))
		}
		for name, ask := range map[string]func() (store.PauseReply, error){
			"account": pause(d.pausing("a", "", sec)), "all": pause(d.pausing("", "", sec)), "key": pause(d.pausing("a", "users", sec)),
			"quarantine": quarantine,
		} {
			before := d.status().Version
			first, err := ask()
			require.NoError(d.t, err)
			require.Equal(d.t, before, first.Before, name)
			require.NotEqual(d.t, before, first.Version, name)
			require.Equal(d.t, first.Version, d.status().Version, name)
			again, err := ask()
			require.NoError(d.t, err)
			require.Equal(d.t, store.PauseReply{Until: again.Until, Version: first.Version, Before: first.Version}, again, "nothing has changed: %s", name)
		}
	}},
}

func (d *desk) pausing(account, key string, length time.Duration) store.PauseRequest {
	return store.PauseRequest{Budget: d.budget, Account: account, Key: key, For: length, Now: d.clock}
}

func (d *desk) quarantining(token, reason string, length time.Duration) store.QuarantineRequest {
	return store.QuarantineRequest{Budget: d.budget, Token: token, Reason: reason, For: length, Now: d.clock}
}

// pauseKey pauses a key, and demands the end of the pause in force.
func (d *desk) pauseKey(account, key string, length, want time.Duration) {
	d.t.Helper()
	paused, err := d.store.Pause(d.t.Context(), d.pausing(account, key, length))
	require.NoError(d.t, err)
	require.Equal(d.t, want, since(paused.Until))
}

// quarantine quarantines a token, and demands the end of the quarantine in force.
func (d *desk) quarantine(token, reason string, length, want time.Duration) {
	d.t.Helper()
	reply, err := d.store.Quarantine(d.t.Context(), d.quarantining(token, reason, length))
	require.NoError(d.t, err)
	require.Equal(d.t, want, since(reply.Until))
}

// listed demands the pauses that Status lists.
func (d *desk) listed(want map[store.Pause]time.Duration) {
	d.t.Helper()
	got := make(map[store.Pause]time.Duration)
	for _, p := range d.status().Pauses {
		got[store.Pause{Account: p.Account, Key: p.Key}] = since(p.Until)
	}
	require.Equal(d.t, want, got)
}

// quarantined demands the quarantines that Status lists.
func (d *desk) quarantined(want map[store.Quarantine]time.Duration) {
	d.t.Helper()
	got := make(map[store.Quarantine]time.Duration)
	for _, q := range d.status().Quarantined {
		got[store.Quarantine{Token: q.Token, Reason: q.Reason}] = since(q.Until)
	}
	require.Equal(d.t, want, got)
}
