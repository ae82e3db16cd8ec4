package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/draw"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A history books on two budgets, with lua/front.lua and without.
type history struct {
	with, without group
	booked        [][2]store.Booking
	revisions     []*store.Accounts // the accounts, with the limits of each revision
	lost          bool              // whether a log was
	most          int               // the largest cost under all limits
	seen          time.Time         // when the last was booked
	taken         int               // actions
}

// newHistory draws the limits of an account, and how many accounts have them.
func newHistory(t *draw.T, client redis.UniversalClient, limits []limit.Limit, accounts int) *history {
	var drawn []limit.Limit
	for _, l := range limits {
		l.Max = draw.IntRange(1, 30).Draw(t, "max")
		l.Window = time.Duration(draw.IntRange(1, 4000).Draw(t, "window")) * time.Millisecond
		switch draw.IntRange(0, 4).Draw(t, "length") {
		case 0, 1:
			l.Max, l.Window = 20*l.Max, 20*l.Window
		case 2:
			// What waits for such windows waits for longer than keys outlive what they are needed for.
			l.Window *= 1000
		}
		l.Margin = time.Duration(draw.SampledFrom([]int{0, 1, 7, 300}).Draw(t, "margin")) * time.Millisecond
		if l.Algorithm == limit.GCRA {
			l.Burst = draw.IntRange(1, l.Max).Draw(t, "burst")
			if draw.Bool().Draw(t, "huge") {
				// The time of such a burst is not counted exactly.
				l.Max, l.Burst = 1_000_000_000*l.Max, 1_000_000_000*l.Burst
			}
		}
		drawn = append(drawn, l)
	}
	var list []store.Account
	for i := range accounts {
		list = append(list, store.Account{ID: fmt.Sprint("a", i), Limits: drawn})
	}
	a, err := store.NewAccounts(list...)
	if err != nil {
		t.Skip(err)
	}
	return historyOf(client, a)
}

// historyOf begins the history of some accounts.
func historyOf(client redis.UniversalClient, a *store.Accounts) *history {
	of := func() group {
		return group{store: &Store{Client: client, Timeout: time.Minute}, accounts: a, budget: store.NewBookingID().String(), now: time.UnixMicro(1795000000123457)}
	}
	h := &history{with: of(), without: of(), revisions: []*store.Accounts{a}, most: a.MaxCost()}
	h.without.script = script{name: "book", accounts: true}.with(a.Algorithms())
	return h
}

// book books under one of the revisions, most often the newest.
func (h *history) book(t *draw.T, requests []store.BookRequest) {
	revision := len(h.revisions) - 1
	if draw.IntRange(0, 3).Draw(t, "of another revision") == 0 {
		revision = draw.IntRange(0, revision).Draw(t, "revision")
	}
	h.bookUnder(t, revision, requests)
}

// bookUnder books on both budgets, and demands the same answers.
func (h *history) bookUnder(t require.TestingT, revision int, requests []store.BookRequest) {
	of := func(b group) (answers []store.Booking) {
		b.accounts = h.revisions[revision]
		for i := range requests {
			requests[i].Revision = revision
			requests[i].Budget, requests[i].Accounts, requests[i].Now = b.budget, b.accounts, b.now
		}
		return b.book(t, requests)
	}
	got, want := of(h.with), of(h.without)
	for i, one := range got {
		if one.Booked {
			h.booked = append(h.booked, [2]store.Booking{one, want[i]})
		}
		if i == 0 && h.with.accounts.Len() == 1 && one.Now.Sub(h.seen) > time.Second {
			require.Equal(t, want[i].Used > 0, one.Used > 0, "after a second it is told whether any has left")
		}
		one.Budget, one.Used = want[i].Budget, want[i].Used
		if h.with.accounts.Len() > 1 {
			// Another account's loss may be noticed by the next script only, which begins anew to
			// number the account's units.
			one.Version = want[i].Version
			if h.lost {
				one.Entry, one.Total = want[i].Entry, want[i].Total
			}
			if h.lost && !one.Booked { // all accounts have the same slot until the workers have recorded again, in an order that may differ
				one.Account = want[i].Account
			}
		}
		require.Equal(t, want[i].Slot.Sub(h.with.now), one.Slot.Sub(h.with.now), "the slot of booking %d", i)
		require.Equal(t, want[i], one)
	}
	h.seen = h.with.now
}

// both does something on both budgets.
func (h *history) both(do func(i int, b group)) {
	do(0, h.with)
	do(1, h.without)
}

func (h *history) wait(d time.Duration) {
	h.with.now, h.without.now = h.with.now.Add(d), h.without.now.Add(d)
}

// compare demands that the budgets have the same of the accounts, and tell the same usage.
func (h *history) compare(t require.TestingT) {
	var usages [2][]store.Usage
	var kept [2]map[string]string
	h.both(func(i int, b group) {
		var err error
		usages[i], err = b.store.Usage(context.Background(), store.UsageRequest{Budget: b.budget, Accounts: b.accounts, Now: b.now})
		require.NoError(t, err)
		// It is less what was cancelled, and what is old can be as long as it was not removed. Kept has the total without that.
		for j := range usages[i] {
			usages[i][j].Total = 0
		}
		kept[i] = h.kept(t, b)
	})
	require.Equal(t, usages[1], usages[0])
	require.Equal(t, kept[1], kept[0])
}

// kept returns what a budget's hash and the indexes have of the accounts, but for what only
// front.lua goes by.
func (h *history) kept(t require.TestingT, b group) map[string]string {
	kept := make(map[string]string)
	fields, err := b.store.Client.HGetAll(context.Background(), BaseKey(b.budget)).Result()
	require.NoError(t, err)
	for name, value := range fields {
		if strings.HasPrefix(name, "i:") {
			kept[name] = value[8:]
		}
		if !strings.HasPrefix(name, "a:") {
			continue
		}
		numbers := make([]float64, 4) // ends, total, edge, last
		_, err := binary.Decode([]byte(value), binary.BigEndian, numbers)
		require.NoError(t, err)
		if edge := numbers[2]; edge > 0 {
			window := h.with.accounts.At(0).Limits[0].Window
			require.GreaterOrEqual(t, numbers[0], edge+float64(window.Microseconds()), "it counts for longer than it is kept")
		}
		// Up to when they keep it depends on which of them came in one script, and so does when a
		// loss is noticed, from which on the units are numbered anew.
		from := 1
		if h.lost && h.with.accounts.Len() > 1 {
			from = 2
		}
		kept[name] = fmt.Sprintf("%.0f", numbers[from:])
	}
	for _, accounts := range h.revisions { // each has an index
		for _, cost := range costs { // and by cost
			h.keepIndex(t, b, kept, fmt.Sprintf(":pool:%s*%d", accounts.Digest(), store.IndexUnits(min(cost, h.most))))
		}
	}
	return kept
}

// keepIndex adds what an index has.
func (h *history) keepIndex(t require.TestingT, b group, kept map[string]string, index string) {
	if kept[index] != "" {
		return
	}
	scores, err := b.store.Client.ZRangeWithScores(context.Background(), BaseKey(b.budget)+index, 0, -1).Result()
	require.NoError(t, err)
	for _, one := range scores {
		kept[index] += fmt.Sprintf("%v %.0f ", one.Member, one.Score)
	}
}

// window is the name of what an account's hash has of a window.
var window = regexp.MustCompile(`^[FW]/.*:(\d+)[<^]?$`)

// windows returns what the account's hash has of its windows, but for the newest one, which
// front.lua counts elsewhere.
func windows(t *draw.T, b group, account string) map[string]string {
	fields, err := b.store.Client.HGetAll(t.Context(), BaseKey(b.budget)+":acct:"+account).Result()
	require.NoError(t, err)
	newest := 0
	number := func(name string) int {
		n := -1
		if parts := window.FindStringSubmatch(name); parts != nil {
			n, err = strconv.Atoi(parts[1])
			require.NoError(t, err)
		}
		return n
	}
	for name := range fields {
		newest = max(newest, number(name))
	}
	maps.DeleteFunc(fields, func(name, _ string) bool { return number(name) < 0 || number(name) == newest })
	return fields
}
