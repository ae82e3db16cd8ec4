package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// resumeRules are about pauses and quarantines that end before their time, and about what is
// forgotten.
var resumeRules = []rule{
	{"Resume ends the pauses of an account, those with a Key too, and no others", func(h *harness) {
		h.pause("a", 10*sec, 10*sec)
		h.pauseKey("a", "users", 11*sec, 11*sec)
		h.pauseKey("b", "a", 12*sec, 12*sec)
		h.pauseKey("", "a", 13*sec, 13*sec)
		h.pause("b", 14*sec, 14*sec)
		h.quarantine("a", "dead", 15*sec, 15*sec)
		h.resume(store.ResumeRequest{Account: "a"})
		h.listed(map[store.Pause]time.Duration{{Account: "b", Key: "a"}: 12 * sec, {Key: "a"}: 13 * sec, {Account: "b"}: 14 * sec})
		h.quarantined(map[store.Quarantine]time.Duration{{Token: "a", Reason: "dead"}: 15 * sec})
		h.slots(h.single(atMost(2, 10*sec)), 0, 0)
		h.pause("a", 2*sec, 2*sec) // the longer one is forgotten
	}},
	{"Resume ends the quarantines of a token, for each reason", func(h *harness) {
		h.quarantine("t", "dead", 10*sec, 10*sec)
		h.quarantine("t", "billing", 11*sec, 11*sec)
		h.quarantine("u", "t", 12*sec, 12*sec)
		h.pause("t", 13*sec, 13*sec)
		h.resume(store.ResumeRequest{Token: "t"})
		h.quarantined(map[store.Quarantine]time.Duration{{Token: "u", Reason: "t"}: 12 * sec})
		h.pauses(map[string]time.Duration{"t": 13 * sec})
		h.quarantine("t", "dead", sec, sec)
	}},
	{"Resume of no account and no token ends all", func(h *harness) {
		a, both := h.single(atMost(9, 10*sec)), h.each(atMost(9, 10*sec), "b", "c")
		h.pause("", 20*sec, 20*sec)
		h.pause("b", 30*sec, 30*sec)
		h.pauseKey("", "users", 10*sec, 10*sec)
		h.quarantine("t", "dead", 10*sec, 10*sec)
		h.slots(a, 20*sec, 20*sec)
		h.slots(both, 20*sec)
		h.resume(store.ResumeRequest{})
		h.listed(map[store.Pause]time.Duration{})
		h.quarantined(map[store.Quarantine]time.Duration{})
		h.slots(a, 0)
		h.slots(both, 0, 0)
		h.slotOn(both, "b", 0)
	}},
	{"after a resumption the next bookings come before those behind the pause", func(h *harness) {
		a, both := h.single(atMost(4, 10*sec)), h.each(atMost(4, 10*sec), "a", "b")
		h.pauseSlow("a", 50*sec, sec)
		h.slots(a, 50*sec, 51*sec)
		h.resume(store.ResumeRequest{Account: "a"})
		h.used(a, 2, 2, 60*sec)
		h.slots(a, 0, 0, 0, 0, 10*sec)
		h.at(20 * sec)
		h.pauseSlow("a", 50*sec, sec)
		h.slotOn(both, "b", 20*sec)
		h.resume(store.ResumeRequest{Account: "a"})
		h.slotOn(both, "a", 20*sec)
	}},
	{"of accounts that were never booked a pool hears too that a pause was ended", func(h *harness) {
		both := h.each(atMost(1, 10*sec), "a", "b")
		h.pause("a", 50*sec, 50*sec)
		h.slotOn(both, "b", 0)
		h.slotOn(both, "b", 10*sec)
		h.resume(store.ResumeRequest{Account: "a"})
		h.slotOn(both, "a", 0)
	}},
	{"Status tells resumptions for a day, in their order", func(h *harness) {
		h.pause("a", 10*sec, 10*sec)
		known := h.status().Version
		h.resume(store.ResumeRequest{Account: "a"})
		h.resume(store.ResumeRequest{Account: "b", Token: "t"})
		h.resume(store.ResumeRequest{})
		h.at(sec)
		h.resume(store.ResumeRequest{Account: "a"})
		h.pause("a", 5*sec, 6*sec)
		want := []store.Resumption{{Account: "b", Token: "t", At: start}, {At: start}, {Account: "a", At: start.Add(sec)}}
		h.resumed(0, want)
		h.resumed(known, want)
		known = h.status().Version
		h.resumed(known, nil)
		h.resume(store.ResumeRequest{Account: "c", Forget: true})
		h.resumed(known, []store.Resumption{{Account: "c", Forgotten: true, At: start.Add(sec)}})
		h.pauses(map[string]time.Duration{"a": 6 * sec})
		h.at(sec + day - us)
		h.resumed(known, []store.Resumption{{Account: "c", Forgotten: true, At: start.Add(sec)}})
	}},
	{"the answer to Resume has the Version after it and before it", func(h *harness) {
		h.pause("a", 10*sec, 10*sec)
		before := h.status().Version
		reply := h.resume(store.ResumeRequest{Account: "a"})
		require.Equal(h.t, store.PauseReply{Until: h.clock, Version: h.status().Version, Before: before}, reply)
		require.Greater(h.t, reply.Version, before)
		require.Equal(h.t, reply.Version, h.book(h.single(atMost(1, sec)), 1).Version)
	}},
	{"who watches hears of a resumption", func(h *harness) {
		w := h.watch()
		w.awaitVersion(h.resume(store.ResumeRequest{Token: "t"}).Version)
	}},
	{"a forgotten account was never booked", func(h *harness) {
		for _, l := range []limit.Limit{
			atMost(2, 10*sec),
			{Max: 2, Window: 10 * sec, Algorithm: limit.FixedWindow},
			{Max: 2, Window: 10 * sec, Algorithm: limit.FixedWindow, FirstUse: true},
			{Max: 2, Window: 10 * sec, Algorithm: limit.SlidingWindow},
			{Max: 2, Window: 10 * sec, Algorithm: limit.SubWindows},
			{Max: 2, Window: 10 * sec, Algorithm: limit.GCRA, Burst: 2},
		} {
			h.budget += "-" + l.Algorithm.String()
			a, both := h.single(l), h.each(l, "a", "b")
			old := []store.Booking{h.book(a, 1), h.book(a, 1), h.book(a, 1), h.book(both, 1), h.book(both, 1), h.book(both, 1)}
			h.pause("a", 90*sec, 90*sec)
			h.resume(store.ResumeRequest{Account: "a", Forget: true})
			h.used(a, 0, 2, never)
			h.listed(map[store.Pause]time.Duration{})
			h.slotOn(both, "a", 0)
			h.slots(a, 0)
			for _, b := range old {
				if b.Account == "a" {
					h.cancel(b)
				}
			}
			require.Equal(h.t, 2, h.usage(a)[0].Limits[0].Used, "what was forgotten cannot be cancelled: %v", l.Algorithm)
			require.Greater(h.t, since(h.book(a, 1).Slot), time.Duration(0))
		}
	}},
	{"a forgotten account has forgotten limits of a higher revision", func(h *harness) {
		r := h.request(h.single(atMost(1, 10*sec)), 1, 0)
		r.Revision = 1
		h.ask(r)
		a := h.single(atMost(5, 10*sec))
		require.NotEmpty(h.t, h.ask(h.request(a, 1, 0)).Effective.Limits)
		h.resume(store.ResumeRequest{Account: "a", Forget: true})
		b := h.ask(h.request(a, 1, 0))
		require.Empty(h.t, b.Effective.Limits)
		require.True(h.t, b.Booked)
	}},
	{"a quarantine replaces the one that ends when it says", func(h *harness) {
		replace := func(ends, length time.Duration, count int) store.PauseReply {
			r := h.quarantineRequest("t", "dead", length)
			r.Replaces, r.Count, r.Probing = start.Add(ends), count, count%2 == 1
			reply, err := h.store.Quarantine(h.t.Context(), r)
			require.NoError(h.t, err)
			return reply
		}
		require.Equal(h.t, store.PauseReply{}, replace(5*sec, sec, 1), "there is none")
		h.quarantine("t", "dead", 10*sec, 10*sec)
		before := h.status().Version
		require.Equal(h.t, store.PauseReply{Until: start.Add(10 * sec), Version: before, Before: before}, replace(9*sec, sec, 2), "it ends later")
		require.Equal(h.t, 4*sec, since(replace(10*sec, 4*sec, 3).Until), "it is shorter")
		require.Equal(h.t, []store.Quarantine{{Token: "t", Reason: "dead", Until: start.Add(4 * sec), Count: 3, Probing: true}}, h.status().Quarantined)
		h.at(20 * sec)
		first := replace(4*sec, 60*sec, 4)
		require.NotEqual(h.t, first.Before, first.Version, "it is over")
		second := replace(4*sec, 60*sec, 4)
		require.Equal(h.t, store.PauseReply{Until: first.Until, Version: first.Version, Before: first.Version}, second, "the first has replaced it")
		require.Equal(h.t, 20*sec, since(replace(80*sec, 0, 4).Until), "it ends now")
		require.Empty(h.t, h.status().Quarantined)
		require.Equal(h.t, 21*sec, since(replace(20*sec, sec, 4).Until), "it is known all the same")
		h.resume(store.ResumeRequest{Token: "t"})
		require.Zero(h.t, replace(21*sec, sec, 5).Until, "it was ended")
		require.Empty(h.t, h.status().Quarantined)
	}},
	{"a malformed resumption is refused", func(h *harness) {
		h.pause("a", 10*sec, 10*sec)
		for says, r := range map[string]store.ResumeRequest{
			"a space in an account": {Budget: h.budget, Account: "a b"},
			"a colon in a token":    {Budget: h.budget, Token: "a:b"},
			"no budget":             {Account: "a"},
			"nobody to forget":      {Budget: h.budget, Token: "t", Forget: true},
			"before 1970":           {Budget: h.budget, Now: time.Unix(-1, 0)},
		} {
			_, err := h.store.Resume(h.t.Context(), r)
			h.malformed(err, says)
		}
		for says, spoil := range map[string]func(*store.QuarantineRequest){
			"a negative count": func(r *store.QuarantineRequest) { r.Count = -1 },
			"a high count":     func(r *store.QuarantineRequest) { r.Count = 1_000_001 },
			"before 1970":      func(r *store.QuarantineRequest) { r.Replaces = time.Unix(-1, 0) },
		} {
			r := h.quarantineRequest("t", "dead", sec)
			spoil(&r)
			_, err := h.store.Quarantine(h.t.Context(), r)
			h.malformed(err, says)
		}
		h.pauses(map[string]time.Duration{"a": 10 * sec})
	}},
}

// resume ends pauses and quarantines.
func (h *harness) resume(r store.ResumeRequest) store.PauseReply {
	h.t.Helper()
	r.Budget, r.Now = h.budget, h.clock
	reply, err := h.store.Resume(h.t.Context(), r)
	require.NoError(h.t, err)
	return reply
}

// resumed demands the resumptions that Status tells a caller of that version.
func (h *harness) resumed(known int64, want []store.Resumption) {
	h.t.Helper()
	got := h.statusSince(known).Resumed
	require.Len(h.t, got, len(want))
	for i := range want {
		require.Equal(h.t, since(want[i].At), since(got[i].At))
		got[i].At = want[i].At
		require.Equal(h.t, want[i], got[i])
	}
}
