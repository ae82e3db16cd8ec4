package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/peers"
	"github.com/ration-go/ration/store"
)

// A floor sends the commands of a booking: all read the clock and the hash and write it, and a
// log gets an entry more with each call.
func TestFloorsSendTheCommandsOfABooking(t *testing.T) {
	b := small(t)
	const calls = 10
	for name, sends := range map[string][]string{
		counterFloor:              {"hmget", "time", "hset"},
		logFloor:                  {"exists", "hmget", "time", "zadd", "hset"},
		spentLogFloor:             {"hmget", "time", "zscore", "zadd", "hset"},
		streamFloor:               {"exists", "hmget", "time", "xadd", "hset"},
		spentStreamFloor:          {"hmget", "time", "xrange", "xadd", "hset"},
		counterFloor + packed:     {"hmget", "time", "hset"},
		logFloor + packed:         {"exists", "hmget", "time", "zadd", "hset"},
		spentLogFloor + packed:    {"hmget", "time", "zscore", "zadd", "hset"},
		streamFloor + packed:      {"exists", "hmget", "time", "xadd", "hset"},
		spentStreamFloor + packed: {"hmget", "time", "xrange", "xadd", "hset"},
		counterFloor + each:       {"hmget", "time", "hset"},
		spentLogFloor + each:      {"hmget", "time", "zrange", "zadd", "hset"},
	} {
		work := b.floor(name)
		require.NoError(t, work(t.Context(), 3), "the script is loaded")
		require.NoError(t, b.rdb.ConfigResetStat(t.Context()).Err())
		for range calls {
			require.NoError(t, work(t.Context(), 3))
		}
		n, micros, err := evaluated(t.Context(), b.rdb)
		require.NoError(t, err)
		require.Equal(t, calls, n)
		require.Positive(t, micros)
		var sent []string
		stats := b.rdb.InfoMap(t.Context(), "commandstats")
		for _, command := range []string{"exists", "hmget", "time", "zscore", "zrange", "xrange", "zadd", "xadd", "hset"} {
			if text := stats.Item("Commandstats", "cmdstat_"+command); text != "" {
				require.Contains(t, text, "calls=10,")
				sent = append(sent, command)
			}
		}
		require.Equal(t, sends, sent, name)
		switch name {
		case logFloor, spentLogFloor, logFloor + packed, spentLogFloor + packed:
			require.Equal(t, int64(calls+1), b.rdb.ZCard(t.Context(), name+":log").Val())
		case spentLogFloor + each:
			require.Equal(t, int64(3*(calls+1)), b.rdb.ZCard(t.Context(), name+":log").Val())
		case streamFloor, spentStreamFloor, streamFloor + packed, spentStreamFloor + packed:
			require.Equal(t, int64(calls+1), b.rdb.XLen(t.Context(), name+":log").Val())
		}
	}
}

// The calls before a script is measured are an entry each, and its caller sends nothing else.
func TestLoneCallsAreOneScriptEach(t *testing.T) {
	b := small(t)
	c := countings[0]
	scripts, callers, err := b.evaluations(t.Context(), append(c.bookings(b), b.loneFloors()[0])...)
	require.NoError(t, err)
	for _, name := range []string{c.free(), c.spent(), c.floor[0]} {
		for _, rounds := range [][]float64{scripts[name], callers[name]} {
			require.Len(t, rounds, 3)
			require.Positive(t, slices.Min(rounds))
		}
	}
	entries := b.rdb.ZCard(t.Context(), "ration:v2:{"+peers.Budget+"}:log:"+c.name+"-free").Val()
	require.Greater(t, entries, int64(b.before), "of one caller at a time")
	require.Equal(t, goroutines, b.callers, "as it was")

	_, _, err = b.evaluations(t.Context(), b.of("throttled", 0))
	require.ErrorContains(t, err, "throttled")
}

// Of each account a slot ahead is cancelled, and one behind it is not.
func TestASlotOfEachAccountIsCancelled(t *testing.T) {
	kept := new(ration.MemoryStore)
	list, err := store.NewAccounts(account("one", ration.PerHour(2)), account("two", ration.PerHour(2)))
	require.NoError(t, err)
	for range 4 {
		require.NoError(t, peers.BookOn(kept, list, 1, 0)(t.Context()))
	}
	require.NoError(t, cancelOneEach(t.Context(), kept, list, 2))
	require.Equal(t, 4+2, used(t, kept, list), "what was cancelled counts for nothing")
	usage, err := kept.Usage(t.Context(), store.UsageRequest{Budget: peers.Budget, Accounts: list})
	require.NoError(t, err)
	require.Equal(t, usage[0].Limits[0].Used, usage[1].Limits[0].Used, "of each account one")
	require.Error(t, cancelOneEach(t.Context(), new(ration.MemoryStore), list, 2), "the quota is not spent")
}
