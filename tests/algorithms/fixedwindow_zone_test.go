package algorithms_test

import (
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// instantIn reads a wall clock with the offset that it has there.
func instantIn(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05.999999 -0700", s)
	require.NoError(t, err)
	return at
}

// Of a limit of one unit each row is an instant at which a caller asks behind one
// that has just left, and the slot that it gets: where the next window begins.
func TestWindowsBeginByTheClocksOfTheirZone(t *testing.T) {
	t.Parallel()
	redis := rationtest.NewRedisBudget(t)
	for _, row := range []struct {
		says, zone string
		window     time.Duration
		now, next  string
	}{
		{"a day in winter", "America/Los_Angeles", day, "2026-01-15 00:00:00 -0800", "2026-01-16 00:00:00 -0800"},
		{"its last microsecond", "America/Los_Angeles", day, "2026-01-15 23:59:59.999999 -0800", "2026-01-16 00:00:00 -0800"},
		{"the day of 23 h", "America/Los_Angeles", day, "2026-03-08 00:00:00 -0800", "2026-03-09 00:00:00 -0700"},
		{"its end", "America/Los_Angeles", day, "2026-03-08 23:59:59.999999 -0700", "2026-03-09 00:00:00 -0700"},
		{"a day in summer", "America/Los_Angeles", day, "2026-07-01 12:00:00 -0700", "2026-07-02 00:00:00 -0700"},
		{"the day of 25 h", "America/Los_Angeles", day, "2026-11-01 00:00:00 -0700", "2026-11-02 00:00:00 -0800"},
		{"the hour that is skipped", "America/Los_Angeles", time.Hour, "2026-03-08 01:59:59 -0800", "2026-03-08 03:00:00 -0700"},
		{"the hour that comes twice", "America/Los_Angeles", time.Hour, "2026-11-01 01:00:00 -0700", "2026-11-01 02:00:00 -0800"},
		{"the half hour that lasts until the clocks have caught up", "America/Los_Angeles", 30 * time.Minute, "2026-11-01 01:10:00 -0800", "2026-11-01 02:00:00 -0800"},
		{"three hours of which one is skipped", "America/Los_Angeles", 3 * time.Hour, "2026-03-08 00:00:00 -0800", "2026-03-08 03:00:00 -0700"},
		{"milliseconds of which an hour is skipped", "America/Los_Angeles", time.Millisecond, "2026-03-08 01:59:59.9995 -0800", "2026-03-08 03:00:00 -0700"},
		{"a quarter of an hour", "Asia/Kathmandu", day, "2026-05-01 23:00:00 +0545", "2026-05-02 00:00:00 +0545"},
		{"the same, by the hour", "Asia/Kathmandu", time.Hour, "2026-05-01 22:15:00 +0545", "2026-05-01 23:00:00 +0545"},
		{"half an hour forward", "Australia/Lord_Howe", day, "2026-10-04 00:00:00 +1030", "2026-10-05 00:00:00 +1100"},
		{"half an hour back", "Australia/Lord_Howe", day, "2026-04-05 00:00:00 +1100", "2026-04-06 00:00:00 +1030"},
		{"before an hour of half an hour", "Australia/Lord_Howe", time.Hour, "2026-10-04 01:30:00 +1030", "2026-10-04 02:30:00 +1100"},
		{"an hour of half an hour", "Australia/Lord_Howe", time.Hour, "2026-10-04 02:30:00 +1100", "2026-10-04 03:00:00 +1100"},
		{"a midnight that is skipped", "America/Sao_Paulo", day, "2018-11-03 12:00:00 -0300", "2018-11-04 01:00:00 -0200"},
		{"a midnight that comes twice", "America/Sao_Paulo", day, "2018-02-17 12:00:00 -0200", "2018-02-18 00:00:00 -0300"},
		{"UTC", "", day, "2026-03-08 12:00:00 +0000", "2026-03-09 00:00:00 +0000"},
	} {
		for name, store := range map[string]ration.Store{"memory": new(ration.MemoryStore), "redis": redis.Store} {
			t.Run(row.says+" in "+name, func(t *testing.T) {
				a := rationtest.Accounts(t, 1, ration.Limit{Max: 1, Window: row.window, Algorithm: ration.FixedWindow, Zone: row.zone})
				d := newFixedClient(t, store)
				d.now = instantIn(t, row.now)
				d.slots(a, d.now, instantIn(t, row.next))
			})
		}
	}
}

// Whatever now is, a day's edges are the same, and no day is over twice.
func TestEdgesDoNotDependOnWhenTheyAreSpelledOut(t *testing.T) {
	t.Parallel()
	location, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	store := new(ration.MemoryStore)
	a := rationtest.Accounts(t, 1, ration.Limit{Max: 1, Window: day, Algorithm: ration.FixedWindow, Zone: "America/Los_Angeles"})
	d := newFixedClient(t, store)
	d.now = time.Date(2026, 1, 1, 0, 0, 0, 0, location)
	for i := range 800 {
		if i == 400 {
			d.now = time.Date(2026, 12, 30, 5, 0, 0, 0, location)
		}
		require.True(t, time.Date(2026, 1, 1+i, 0, 0, 0, 0, location).Equal(d.book(a, 1).Slot), "day %d", i)
	}
}
