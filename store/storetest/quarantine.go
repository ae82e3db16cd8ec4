package storetest

import (
	"math"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

// keyRules are about what moves no slot: pauses with a Key, and quarantined tokens.
var keyRules = []rule{
	{"a pause with a Key moves no slot", func(h *harness) {
		a := h.single(atMost(2, 10*sec))
		h.pauseKey("a", "users", 5*sec, 5*sec)
		h.pauseKey("", "users", 5*sec, 5*sec)
		h.slots(a, 0, 0, 10*sec)
		require.Zero(h.t, h.usage(a)[0].PausedUntil)
	}},
	{"Status lists the pauses with a Key, of one account and of all", func(h *harness) {
		h.pauseKey("a", "users", 5*sec, 5*sec)
		h.pauseKey("b", "users", 6*sec, 6*sec)
		h.pauseKey("", "users", 7*sec, 7*sec)
		h.pauseKey("a", "0123456789abcdef", 8*sec, 8*sec)
		h.pause("a", 9*sec, 9*sec)
		h.pause("", 10*sec, 10*sec)
		h.listed(map[store.Pause]time.Duration{
			{Account: "a", Key: "users"}: 5 * sec, {Account: "b", Key: "users"}: 6 * sec, {Key: "users"}: 7 * sec,
			{Account: "a", Key: "0123456789abcdef"}: 8 * sec, {Account: "a"}: 9 * sec, {}: 10 * sec,
		})
		h.at(8 * sec)
		h.listed(map[store.Pause]time.Duration{{Account: "a"}: 9 * sec, {}: 10 * sec})
	}},
	{"a pause with a Key only lengthens", func(h *harness) {
		h.pauseKey("a", "users", 10*sec, 10*sec)
		h.pauseKey("a", "users", 5*sec, 10*sec)
		h.at(2 * sec)
		h.pauseKey("a", "users", 8*sec, 10*sec)
		h.pauseKey("a", "users", 8*sec+us, 10*sec+us)
		h.at(20 * sec)
		h.pauseKey("a", "users", us, 20*sec+us)
	}},
	{"the ID of an account is never taken for a Key", func(h *harness) {
		long := strings.Repeat("x", 64)
		want := make(map[store.Pause]time.Duration)
		for i, id := range []string{"at-users", "at-0123456789abcdef", "aside-dead-token", "users", "-", "_", long} {
			want[store.Pause{Account: id}] = time.Duration(i+1) * sec
			h.pause(id, time.Duration(i+1)*sec, time.Duration(i+1)*sec)
			want[store.Pause{Account: id, Key: long}] = time.Duration(i+1) * sec
			h.pauseKey(id, long, time.Duration(i+1)*sec, time.Duration(i+1)*sec)
		}
		h.listed(want)
		require.Empty(h.t, h.status().Quarantined)
	}},
	{"a Key is 1 to 64 letters and digits", func(h *harness) {
		for _, key := range []string{" ", "a b", "a-b", "a_b", "a:b", "*", "é", strings.Repeat("x", 65)} {
			_, err := h.store.Pause(h.t.Context(), h.pauseRequest("a", key, sec))
			h.malformed(err, "a pause of %q", key)
		}
		require.Empty(h.t, h.status().Pauses)
	}},
	{"of several callers one replaces the pause of an account, and its slow start begins anew", func(h *harness) {
		a := h.single(atMost(99, 10*sec))
		for _, account := range []string{"a", ""} {
			first := h.pauseRequest(account, "", 5*sec)
			first.SlowStart, first.Row = sec, 3
			reply, err := h.store.Pause(h.t.Context(), first)
			require.NoError(h.t, err)
			ends := reply.Until
			h.at(since(ends) + sec)
			for i, want := range []bool{true, false} {
				again := h.pauseRequest(account, "", 0)
				again.Replaces, again.SlowStart, again.Row, again.Kind = ends, sec, 3, store.PauseServed
				reply, err := h.store.Pause(h.t.Context(), again)
				require.NoError(h.t, err)
				require.Equal(h.t, want, reply.Version != reply.Before, "%d", i)
				require.Equal(h.t, since(ends)+sec, since(reply.Until))
			}
			begun := since(ends) + sec
			h.slots(a, begun, begun+sec, begun+1500*time.Millisecond)
			h.at(since(ends) + 60*sec)
		}
	}},
	{"of several callers one replaces the pause of a part, also if it is over", func(h *harness) {
		r := h.pauseRequest("a", "users", 5*sec)
		r.Replaces = start.Add(5 * sec)
		reply, err := h.store.Pause(h.t.Context(), r)
		require.NoError(h.t, err)
		require.Equal(h.t, reply.Before, reply.Version, "none is known")
		first := h.pauseRequest("a", "users", 5*sec)
		first.SlowStart = 60 * sec
		_, err = h.store.Pause(h.t.Context(), first)
		require.NoError(h.t, err)
		require.Equal(h.t, 60*sec, h.status().Pauses[0].SlowStart)
		h.at(5 * sec)
		for i := range 3 {
			h.at(5*sec + time.Duration(i)*us)
			again := h.pauseRequest("a", "users", sec)
			again.Replaces = start.Add(5 * sec)
			reply, err := h.store.Pause(h.t.Context(), again)
			require.NoError(h.t, err)
			require.Equal(h.t, i == 0, reply.Version != reply.Before)
			require.Equal(h.t, 6*sec, since(reply.Until))
		}
		require.Zero(h.t, h.status().Pauses[0].SlowStart)
	}},
	{"Status tells the causes of pauses and quarantines, those of the last requests that changed them", func(h *harness) {
		cause := func(account, key, why string, length time.Duration) {
			r := h.pauseRequest(account, key, length)
			r.Cause = why
			_, err := h.store.Pause(h.t.Context(), r)
			require.NoError(h.t, err)
		}
		cause("a", "", "a 429, says é", 5*sec)
		cause("a", "users", "a 503", 5*sec)
		cause("", "", "an operator", 6*sec)
		cause("b", "", "the first", 5*sec)
		cause("b", "", "a shorter one", 4*sec)
		cause("c", "", "the first", 4*sec)
		cause("c", "", "", 5*sec)
		_, err := h.store.Quarantine(h.t.Context(), store.QuarantineRequest{Budget: h.budget, Token: "t", Reason: "dead", For: sec, Cause: strings.Repeat("x", 500), Now: h.clock})
		require.NoError(h.t, err)
		told := make(map[[2]string]string)
		status := h.status()
		for _, p := range status.Pauses {
			told[[2]string{p.Account, p.Key}] = p.Cause
		}
		require.Equal(h.t, map[[2]string]string{{"a", ""}: "a 429, says é", {"a", "users"}: "a 503", {}: "an operator", {"b", ""}: "the first", {"c", ""}: ""}, told)
		require.Len(h.t, status.Quarantined[0].Cause, 500)
		h.resume(store.ResumeRequest{Account: "a"})
		cause("a", "", "", sec)
		for _, p := range h.status().Pauses {
			require.True(h.t, p.Account != "a" || p.Cause == "", "what was ended has left %q", p.Cause)
		}
	}},
	{"a Cause is one line of text of at most 500 bytes", func(h *harness) {
		for _, wrong := range []string{strings.Repeat("x", 501), "a\nb", "\xff", "\x00"} {
			r := h.pauseRequest("a", "", sec)
			r.Cause = wrong
			_, err := h.store.Pause(h.t.Context(), r)
			h.malformed(err, "%q", wrong)
		}
	}},
	{"Status lists the quarantined tokens, for each reason", func(h *harness) {
		h.quarantine("t", "dead", 5*sec, 5*sec)
		h.quarantine("t", "billing", 4*sec, 4*sec)
		h.quarantine("u-v_w", "a-b_c", 9*sec, 9*sec)
		h.quarantined(map[store.Quarantine]time.Duration{
			{Token: "t", Reason: "dead"}: 5 * sec, {Token: "t", Reason: "billing"}: 4 * sec, {Token: "u-v_w", Reason: "a-b_c"}: 9 * sec,
		})
		h.at(5 * sec)
		h.quarantined(map[store.Quarantine]time.Duration{{Token: "u-v_w", Reason: "a-b_c"}: 9 * sec})
		require.Empty(h.t, h.status().Pauses)
	}},
	{"a quarantine moves no slot", func(h *harness) {
		h.quarantine("a", "dead", 5*sec, 5*sec)
		h.slots(h.single(atMost(2, 10*sec)), 0, 0, 10*sec)
	}},
	{"a quarantine only lengthens", func(h *harness) {
		h.quarantine("t", "dead", 10*sec, 10*sec)
		h.quarantine("t", "dead", 5*sec, 10*sec)
		h.quarantine("t", "dead", 11*sec, 11*sec)
		h.at(20 * sec)
		h.quarantine("t", "dead", us, 20*sec+us)
	}},
	{"a malformed quarantine is refused", func(h *harness) {
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
			r := h.quarantineRequest("t", "dead", sec)
			spoil(&r)
			_, err := h.store.Quarantine(h.t.Context(), r)
			h.malformed(err, says)
		}
		require.Empty(h.t, h.status().Quarantined)
	}},
	{"Status tells what has changed since a known version, or all", func(h *harness) {
		h.pauseKey("a", "users", 50*sec, 50*sec)
		h.pauseKey("b", "users", 3*sec, 3*sec)
		h.quarantine("t", "dead", 40*sec, 40*sec)
		h.pause("", 30*sec, 30*sec)
		first := h.status().Version
		h.changed(first, nil, nil)

		h.pauseKey("a", "users", 60*sec, 60*sec)
		h.pauseKey("a", "media", 4*sec, 4*sec)
		h.pause("c", 20*sec, 20*sec)
		second := h.status().Version
		h.pause("", 31*sec, 31*sec)
		h.pause("", 10*sec, 31*sec) // it changes nothing
		h.quarantine("t", "dead", 41*sec, 41*sec)
		h.quarantine("t", "billing", 5*sec, 5*sec)
		quarantined := map[store.Quarantine]time.Duration{{Token: "t", Reason: "dead"}: 41 * sec, {Token: "t", Reason: "billing"}: 5 * sec}
		h.changed(first, map[store.Pause]time.Duration{
			{Account: "a", Key: "users"}: 60 * sec, {Account: "a", Key: "media"}: 4 * sec, {Account: "c"}: 20 * sec, {}: 31 * sec,
		}, quarantined)
		h.changed(second, map[store.Pause]time.Duration{{}: 31 * sec}, quarantined)

		h.at(5 * sec) // what is over was changed all the same
		h.changed(second, map[store.Pause]time.Duration{{}: 31 * sec}, quarantined)
		h.changed(h.status().Version, nil, nil)
	}},
	{"a version that the store never had is no known one", func(h *harness) {
		h.pauseKey("a", "users", 5*sec, 5*sec)
		for _, version := range []int64{h.status().Version + 1, math.MaxInt64} {
			s := h.statusSince(version)
			require.Zero(h.t, s.Since)
			require.Len(h.t, s.Pauses, 1)
		}
		_, err := h.store.Status(h.t.Context(), store.StatusRequest{Budget: h.budget, Known: -1, Now: h.clock})
		h.malformed(err, "a negative version")
	}},
	{"a revision changes no pause", func(h *harness) {
		h.pauseKey("a", "users", 5*sec, 5*sec)
		known := h.status().Version
		r := h.request(h.single(atMost(2, 10*sec)), 1, store.Forever)
		r.Revision = 1
		h.ask(r)
		require.NotEqual(h.t, known, h.status().Version)
		h.changed(known, nil, nil)
	}},
	{"the answer has the Version after a pause and before it", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		h.book(a, 1)
		pause := func(r store.PauseRequest) func() (store.PauseReply, error) {
			return func() (store.PauseReply, error) { return h.store.Pause(h.t.Context(), r) }
		}
		quarantine := func() (store.PauseReply, error) {
			return h.store.Quarantine(h.t.Context(), h.quarantineRequest("t", "dead", sec))
		}
		for name, ask := range map[string]func() (store.PauseReply, error){
			"account": pause(h.pauseRequest("a", "", sec)), "all": pause(h.pauseRequest("", "", sec)), "key": pause(h.pauseRequest("a", "users", sec)),
			"quarantine": quarantine,
		} {
			before := h.status().Version
			first, err := ask()
			require.NoError(h.t, err)
			require.Equal(h.t, before, first.Before, name)
			require.NotEqual(h.t, before, first.Version, name)
			require.Equal(h.t, first.Version, h.status().Version, name)
			again, err := ask()
			require.NoError(h.t, err)
			require.Equal(h.t, store.PauseReply{Until: again.Until, Version: first.Version, Before: first.Version}, again, "nothing has changed: %s", name)
		}
	}},
}

func (h *harness) pauseRequest(account, key string, length time.Duration) store.PauseRequest {
	return store.PauseRequest{Budget: h.budget, Account: account, Key: key, For: length, Now: h.clock}
}

func (h *harness) quarantineRequest(token, reason string, length time.Duration) store.QuarantineRequest {
	return store.QuarantineRequest{Budget: h.budget, Token: token, Reason: reason, For: length, Now: h.clock}
}

// pauseKey pauses a key, and demands the end of the pause in force.
func (h *harness) pauseKey(account, key string, length, want time.Duration) {
	h.t.Helper()
	paused, err := h.store.Pause(h.t.Context(), h.pauseRequest(account, key, length))
	require.NoError(h.t, err)
	require.Equal(h.t, want, since(paused.Until))
}

// quarantine quarantines a token, and demands the end of the quarantine in force.
func (h *harness) quarantine(token, reason string, length, want time.Duration) {
	h.t.Helper()
	reply, err := h.store.Quarantine(h.t.Context(), h.quarantineRequest(token, reason, length))
	require.NoError(h.t, err)
	require.Equal(h.t, want, since(reply.Until))
}

// listed demands the pauses that Status lists.
func (h *harness) listed(want map[store.Pause]time.Duration) {
	h.t.Helper()
	got := make(map[store.Pause]time.Duration)
	for _, p := range h.status().Pauses {
		got[store.Pause{Account: p.Account, Key: p.Key}] = since(p.Until)
	}
	require.Equal(h.t, want, got)
}

// quarantined demands the quarantines that Status lists.
func (h *harness) quarantined(want map[store.Quarantine]time.Duration) {
	h.t.Helper()
	got := make(map[store.Quarantine]time.Duration)
	for _, q := range h.status().Quarantined {
		got[store.Quarantine{Token: q.Token, Reason: q.Reason}] = since(q.Until)
	}
	require.Equal(h.t, want, got)
}

// changed demands what Status tells a caller of that version, unless it tells all.
func (h *harness) changed(known int64, pauses map[store.Pause]time.Duration, quarantined map[store.Quarantine]time.Duration) {
	h.t.Helper()
	s := h.statusSince(known)
	if s.Since == 0 {
		require.Len(h.t, s.Pauses, len(h.status().Pauses))
		require.Len(h.t, s.Quarantined, len(h.status().Quarantined))
		return
	}
	require.Equal(h.t, known, s.Since)
	require.Equal(h.t, h.status().Version, s.Version)
	require.Len(h.t, s.Pauses, len(pauses))
	for _, p := range s.Pauses {
		require.Equal(h.t, pauses[store.Pause{Account: p.Account, Key: p.Key}], since(p.Until))
	}
	require.Len(h.t, s.Quarantined, len(quarantined))
	for _, q := range s.Quarantined {
		require.Equal(h.t, quarantined[store.Quarantine{Token: q.Token, Reason: q.Reason}], since(q.Until))
	}
}
