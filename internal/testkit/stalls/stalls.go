// Package stalls has fleets that are held up, for the tests of what people are shown of one.
package stalls

import (
	"fmt"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Named is what people are told first of each stall, by its name.
var Named = map[string]string{"endpoint": "49 of 50 accounts paused for 59m more", "one account": "user-07 paused for 20s more",
	"dead token": "token user-03 quarantined (dead_token, tried 5 times), tried again in 3s", "dead token to be tried": "dead_token, tried 5 times), tried again now",
	"all tokens dead": "50 tokens quarantined (dead_token), tried again in 1m", "quota spent": "the quota is spent, which is normal: a new caller waits 3s",
	"slow source": "24 callers waiting for a token's secret", "process killed": "worker crawler-3:4312:9f3a was last heard of 40s ago", "paused by hand": "all accounts paused for 10m more", "store unreached": "8 callers waiting for Redis",
	"lost log": "Redis lost what was booked, 40s ago"}

// All returns fleets of 50 accounts and three processes that are held up, each by one cause, whose name is the key.
func All(now time.Time) map[string]store.Description {
	minute := limit.Limit{Max: 60, Window: time.Minute}
	fleet := func(used int64, change func(d *store.Description)) store.Description {
		d := store.Description{Budget: "likes", Now: now}
		for i := range 50 {
			id := fmt.Sprintf("%016x", 0x5af1b2+i*0x10001)
			d.Accounts = append(d.Accounts, store.DescribedAccount{Label: fmt.Sprintf("user-%02d", i),
				Usage: store.Usage{Account: id, Now: now, Limits: []store.LimitUsage{store.NewLimitUsage(minute, used, 0, now)}}})
			d.Accounts[i].Limits[0].FreeAt = now.Add(3*time.Second + time.Duration(i)*100*time.Millisecond)
		}
		for i := range 3 {
			d.Workers = append(d.Workers, store.Worker{ID: fmt.Sprintf("crawler-%d:4312:9f3a", i+1), Seen: now.Add(-time.Duration(i) * time.Second)})
		}
		change(&d)
		return d
	}
	waiting := func(d *store.Description, reason string) {
		for i := range d.Workers {
			d.Workers[i].Load = store.Load{Waiting: map[string]int{reason: 8}, SlotsPerSecond: 1.4, RefusedLastMinute: i}
		}
	}
	refused := func(i int) string {
		return fmt.Sprintf("429 Too Many Requests from GET https://api.example.com/likes/%d, which asks for 59m%ds (told by crawler-%d, process 4312)", 170000+i, 59-i%3, 3-i%3)
	}
	return map[string]store.Description{
		"endpoint": fleet(12, func(d *store.Description) {
			for i := range 49 {
				until := now.Add(59*time.Minute - time.Duration(i)*time.Second)
				d.Accounts[i].PausedUntil = until
				d.Pauses = append(d.Pauses, store.Pause{Account: d.Accounts[i].Account, Until: until, Cause: refused(i)})
			}
			waiting(d, "pause")
			d.Workers[0].Load.InFlight = 1
		}),
		"one account": fleet(12, func(d *store.Description) {
			d.Accounts[7].PausedUntil = now.Add(20 * time.Second)
			d.Pauses = []store.Pause{{Account: d.Accounts[7].Account, Until: now.Add(20 * time.Second), Cause: refused(7)}}
		}),
		"dead token": fleet(12, func(d *store.Description) {
			d.Quarantined = []store.Quarantine{{Token: d.Accounts[3].Account, Reason: "dead_token", Count: 5, Until: now.Add(3 * time.Second),
				Cause: `401 Unauthorized from GET https://api.example.com/likes/1: {"error":"invalid_token"} (told by crawler-1, process 4312)`}}
		}),
		"dead token to be tried": fleet(12, func(d *store.Description) {
			d.Quarantined = []store.Quarantine{{Token: d.Accounts[3].Account, Reason: "dead_token", Count: 5, Until: now.Add(-3 * time.Second),
				Cause: `401 Unauthorized from GET https://api.example.com/likes/1: {"error":"invalid_token"} (told by crawler-1, process 4312)`}}
		}),
		"all tokens dead": fleet(12, func(d *store.Description) {
			for _, a := range d.Accounts {
				d.Quarantined = append(d.Quarantined, store.Quarantine{Token: a.Account, Reason: "dead_token", Count: 2, Until: now.Add(time.Minute),
					Cause: "401 Unauthorized from GET https://api.example.com/likes/1 (told by crawler-1, process 4312)"})
			}
			waiting(d, "probe")
		}),
		"quota spent":     fleet(60, func(d *store.Description) { waiting(d, "quota") }),
		"store unreached": fleet(12, func(d *store.Description) { d.Workers[0].Load.Waiting = map[string]int{"store": 8} }),
		"slow source":     fleet(12, func(d *store.Description) { waiting(d, "source") }),
		"process killed":  fleet(12, func(d *store.Description) { waiting(d, "quota"); d.Workers[2].Seen = now.Add(-40 * time.Second) }),
		"lost log": fleet(12, func(d *store.Description) {
			waiting(d, "quota")
			d.Workers[0].Load.LogLost = now.Add(-40 * time.Second)
			d.Workers[1].Load.LogLost = now.Add(-40 * time.Second)
			d.Workers[2].Load.LogLost = now.Add(-3 * time.Minute)
		}),
		"paused by hand": fleet(12, func(d *store.Description) {
			d.Pauses = []store.Pause{{Until: now.Add(10 * time.Minute), Cause: "the provider is down (told by operator ann on desk)"}}
			for i := range d.Accounts {
				d.Accounts[i].PausedUntil = d.Pauses[0].Until
			}
		}),
	}
}
