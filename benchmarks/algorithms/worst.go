package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// An ask is bookings that are asked for at one instant.
type ask struct {
	at       time.Duration // since begin
	bookings int
	cost     int // of each
	keep     int // in thousandths
}

// A demand is asks in the order of their instants.
type demand struct {
	name string
	asks []ask
}

// A grant is units that leave.
type grant struct {
	slot time.Duration // since begin
	cost int
}

// worst returns the most units that any of the demands gets into one window, and
// the name of the first demand that does.
func worst(ctx context.Context, limit ration.Limit, byChance int) (most int, name string, err error) {
	accounts, err := account(limit)
	if err != nil {
		return 0, "", err
	}
	for _, d := range demands(limit, accounts.MaxCost(), byChance) {
		grants, err := d.meet(ctx, accounts)
		if err != nil {
			return 0, "", err
		}
		if units := mostIn(grants, limit.Window); units > most {
			most, name = units, d.name
		}
	}
	return most, name, nil
}

// demands are made to get as much as can be into one window: of counts in windows
// with edges by what comes shortly before and behind an edge, of buckets by rests,
// of logs by what is booked ahead and overtaken.
func demands(limit ration.Limit, most, byChance int) []demand {
	all := limit.Max
	w, moment := limit.Window, time.Microsecond
	var list []demand
	phases := []time.Duration{0, moment, w / 4, w / 2, w - w/60 - moment, w - w/60, w - moment}
	for _, phase := range phases {
		list = append(list, demand{fmt.Sprintf("a queue from %v on", phase), []ask{{phase, 3 * all, 1, 0}}})
		for _, behind := range phases[1:] {
			for _, first := range []int{all / 4, all} {
				name := fmt.Sprintf("%d at %v, a queue from %v later on", first, phase, behind)
				list = append(list, demand{name, []ask{{phase, first, 1, 0}, {phase + behind, 2 * all, 1, 0}}})
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range byChance {
		d := demand{name: fmt.Sprintf("by chance, %d", i+1)}
		at := time.Duration(0)
		for units := 0; units < 3*all; {
			switch random.IntN(4) {
			case 0: // to one side of an edge
				at = at.Truncate(w) + w - time.Duration(random.IntN(2))*moment
			case 1:
				at += time.Duration(random.Int64N(int64(w))).Truncate(moment)
			}
			a := ask{at: at, cost: 1}
			if random.IntN(3) == 0 {
				a.cost = 1 + random.IntN(min(most, max(1, all/10)))
			}
			if random.IntN(4) == 0 {
				a.keep = 250
			}
			a.bookings = max(1, (1+random.IntN(all))/a.cost)
			d.asks = append(d.asks, a)
			units += a.bookings * a.cost
		}
		list = append(list, d)
	}
	return list
}

// meet books a demand in an empty store.
func (d demand) meet(ctx context.Context, accounts *store.Accounts) ([]grant, error) {
	kept := new(ration.MemoryStore)
	var grants []grant
	for _, a := range d.asks {
		for range a.bookings {
			booking, err := kept.Book(ctx, store.BookRequest{
				ID: store.NewBookingID(), Budget: budgetName, Accounts: accounts, Cost: a.cost, Reserve: a.keep,
				MaxWait: store.Forever, Now: begin.Add(a.at),
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.name, err)
			}
			grants = append(grants, grant{booking.Slot.Sub(begin), a.cost})
		}
	}
	return grants, nil
}

// mostIn returns the most units in any window of that length: two grants that are
// a whole window apart are not in one.
func mostIn(grants []grant, window time.Duration) (most int) {
	grants = slices.SortedFunc(slices.Values(grants), func(a, b grant) int { return cmp.Compare(a.slot, b.slot) })
	units, first := 0, 0
	for _, g := range grants {
		units += g.cost
		for grants[first].slot <= g.slot-window {
			units -= grants[first].cost
			first++
		}
		most = max(most, units)
	}
	return most
}

// queue returns what a queue gets in the time until its last slot, over Max for each
// window of that, if it begins at the phase of the window that is the worst for it.
func queue(ctx context.Context, limit ration.Limit) (least float64, err error) {
	const windows = 12
	accounts, err := account(limit)
	if err != nil {
		return 0, err
	}
	for i, phase := range []time.Duration{0, time.Microsecond, limit.Window / 7, limit.Window / 2} {
		phase = phase.Truncate(time.Microsecond)
		grants, err := demand{"a queue", []ask{{phase, windows * limit.Max, 1, 0}}}.meet(ctx, accounts)
		if err != nil {
			return 0, err
		}
		first, last := grants[0].slot, grants[len(grants)-1].slot // in order: it is one lane
		units := 0
		for _, g := range grants {
			if g.slot < last {
				units++
			}
		}
		if share := float64(units) / float64(limit.Max) / (float64(last-first) / float64(limit.Window)); i == 0 || share < least {
			least = share
		}
	}
	return least, nil
}
