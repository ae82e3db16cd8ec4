package dashboard

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

const (
	// often is how often the store is read at most, whoever looks.
	often = time.Second
	// patience is how long one reading may take.
	patience = 2 * time.Second
	// past is how much is kept of each reading, and longPast of one reading in each step.
	past     = 5 * time.Minute
	longPast = time.Hour
	step     = 30 * time.Second
)

// A snapshot is what the store had at an instant. It is not changed after it was made.
type snapshot struct {
	number  int64
	begun   time.Time           // when the store was first read
	at      time.Time           // when all was read last
	all     []store.Description // the worst first
	err     error               // why the store could not be read since; nil: it could
	news    []view.Item         // the oldest first
	series  map[seriesKey]series
	bands   []band
	renders *sync.Map // of address to what is sent for it: those that look at the same page are sent the same
}

// A seriesKey names a limit of an account by its place among them, so that its past goes on when the limit changes; without an account,
// what all processes did.
type seriesKey struct {
	budget, account string
	limit           int
}

// A series is the past of a limit, the oldest first: each reading of the last minutes, and one of each step of an hour.
type series struct{ fine, coarse []point }

// add adds a reading, and drops what is too old. The points of before are shared: they are only appended to.
func (s *series) add(p point) {
	s.fine = append(since(s.fine, p.at.Add(-past)), p)
	if len(s.coarse) == 0 || p.at.Sub(s.coarse[len(s.coarse)-1].at) >= step {
		s.coarse = append(since(s.coarse, p.at.Add(-longPast)), p)
	}
}

// over returns the points of so long a time: of a longer one than all readings are kept one of each step.
func (s series) over(span time.Duration, now time.Time) []point {
	if span <= past {
		return since(s.fine, now.Add(-span))
	}
	return since(s.coarse, now.Add(-span))
}

// since returns the points that are not older.
func since(points []point, oldest time.Time) []point {
	for len(points) > 0 && points[0].at.Before(oldest) {
		points = points[1:]
	}
	return points
}

// A point is what was used of a limit, booked ahead and left at an instant; of a budget, its calls a second.
type point struct {
	at                     time.Time
	used, ahead, remaining int
	rate                   float64
}

// A band is a pause as the samples saw it.
type band struct {
	budget, account string // account "": of all
	from, until     time.Time
}

// A sampler reads a store for all that look. The zero sampler has read nothing.
type sampler struct {
	mu     sync.Mutex // held while the store is read; protects all below
	asked  time.Time  // when the store was read last, or could not be
	latest *snapshot
	news   view.News
	series map[seriesKey]series
	bands  []band
}

// look returns the last snapshot, or another one if that is older than a second.
func (s *sampler) look(ctx context.Context, from Store) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.latest != nil && now.Sub(s.asked) < often {
		return s.latest
	}
	s.asked = now
	next := snapshot{number: 1, begun: now, renders: new(sync.Map)}
	if s.latest != nil {
		next = *s.latest
		next.number, next.renders = next.number+1, new(sync.Map)
	}
	// Others want it too: it is read whether this one stays or not.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	all, err := view.Read(ctx, from)
	if next.err = err; err == nil {
		view.WorstFirst(all)
		s.note(all, now)
		next.all, next.at, next.news, next.series, next.bands = all, now, s.news.Told, maps.Clone(s.series), s.bands
	}
	s.latest = &next
	return s.latest
}

// note adds what was read to the past.
func (s *sampler) note(all []store.Description, now time.Time) {
	s.news.Take(all, now)
	if s.series == nil {
		s.series = make(map[seriesKey]series)
	}
	add := func(key seriesKey, p point) {
		one := s.series[key]
		one.add(p)
		s.series[key] = one
	}
	var bands []band                // those before are in use
	last := make(map[[2]string]int) // the place of the last of each budget and account
	for _, b := range s.bands {
		if now.Sub(b.until) < longPast {
			if b.until.After(now) {
				b.until = now // longer if the pause is still there
			}
			last[[2]string{b.budget, b.account}] = len(bands)
			bands = append(bands, b)
		}
	}
	for _, d := range all {
		add(seriesKey{budget: d.Budget}, point{at: now, rate: view.SummarizeWorkers(&d).SlotsPerSecond})
		for _, p := range d.Pauses {
			if p.Key == "" {
				until := now.Add(p.Until.Sub(d.Now))
				if i, found := last[[2]string{d.Budget, p.Account}]; found && bands[i].until.Equal(now) {
					bands[i].until = until
				} else {
					bands = append(bands, band{d.Budget, p.Account, now, until})
				}
			}
		}
		for _, a := range d.Accounts {
			for i, l := range a.Limits {
				add(seriesKey{d.Budget, a.Account, i}, point{at: now, used: l.Used, ahead: l.Ahead, remaining: l.Remaining})
			}
		}
	}
	s.bands = bands
	maps.DeleteFunc(s.series, func(_ seriesKey, one series) bool { return now.Sub(one.fine[len(one.fine)-1].at) > longPast })
}

// find returns a budget of the snapshot; nil: it is not there.
func (s *snapshot) find(budget string) *store.Description {
	for i := range s.all {
		if s.all[i].Budget == budget {
			return &s.all[i]
		}
	}
	return nil
}
