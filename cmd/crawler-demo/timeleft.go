package main

import (
	"context"
	"time"

	"github.com/ration-go/ration/cmd/internal/forecast"
	"github.com/ration-go/ration/store"
)

// forecastShare is how much of the time at most is spent on forecasts: one of a million calls takes about
// a second.
const forecastShare = 0.02

// foresee has another goroutine work out when the crawl is done, as "ration plan" does it: from what is
// used of the quota, with as many workers, each busy with a call for as long as up to now. The answer
// comes through c.forecasts.
func (c *crawl) foresee(stand []store.Usage) {
	if now := time.Now(); c.foreseeing || now.Before(c.nextForecast) {
		return
	}
	planned := forecast.Crawl{Calls: c.callsLeft(), Cost: 1, Workers: c.plan.workers, Latency: c.stats.latency()}
	for _, u := range stand {
		planned.Begin = u.Now
		planned.StandAt(u, false) // what is booked ahead are calls of this crawl
	}
	if planned.Calls <= 0 || len(planned.Accounts) == 0 {
		return
	}
	c.foreseeing = true
	go func() {
		begun := time.Now()
		f, err := planned.Run(context.Background())
		c.forecasts <- foreseen{begun, time.Since(begun), f.Took + planned.Latency, err == nil}
	}()
}

// A foreseen is what a forecast says.
type foreseen struct {
	begun time.Time
	cost  time.Duration // of working it out
	left  time.Duration // until the crawl is done, from begun
	known bool
}

// takeForecast notes when the crawl is done.
func (c *crawl) takeForecast(f foreseen) {
	c.foreseeing, c.done = false, time.Time{}
	c.nextForecast = time.Now().Add(time.Duration(float64(f.cost) / forecastShare))
	if f.known {
		c.done = f.begun.Add(f.left)
	}
}

// callsLeft is how many of the crawl's calls are still to be answered, as far as they are known.
func (c *crawl) callsLeft() int { return c.total() - c.stats.fetched - c.stats.failed }

// timeLeft is how long the rest of the crawl takes. Negative: that is not known.
func (c *crawl) timeLeft() time.Duration {
	switch {
	case c.callsLeft() <= 0:
		return 0
	case c.done.IsZero(), c.stats.downFor(time.Now()) > 0:
		return -1
	}
	left := time.Until(c.done)
	if !c.ends.IsZero() {
		left = min(left, time.Until(c.ends))
	}
	return max(0, left)
}

// latency is how long a call took on average, without the wait for its slot.
func (t *statistics) latency() time.Duration {
	if t.requests == 0 {
		return 0
	}
	return time.Duration(t.took/int64(t.requests)) * time.Microsecond
}
