// Package view is what people and programs are shown of the budgets in a store: their order, their names,
// what has happened, and JSON.
package view

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A Source is what is read: a *ration.RedisStore.
type Source interface {
	// Budgets returns those that were booked lately.
	Budgets(context.Context) ([]store.KnownBudget, error)
	// Describe returns all that is known of a budget.
	Describe(ctx context.Context, budget string) (store.Description, error)
}

// Read returns what a store has of every budget.
func Read(ctx context.Context, from Source) (all []store.Description, err error) {
	budgets, err := from.Budgets(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range budgets {
		d, err := from.Describe(ctx, b.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// WorstFirst puts budgets into order, and the accounts of each: what stands still comes first, and then what
// is used most.
func WorstFirst(all []store.Description) {
	worst := make(map[string]float64, len(all))
	for _, d := range all {
		worst[d.Budget] = badness(d)
		quarantined := make(map[string]bool, len(d.Quarantined))
		for _, q := range d.Quarantined {
			quarantined[q.Token] = true
		}
		of := func(a store.DescribedAccount) float64 {
			if quarantined[a.Account] {
				return 3
			}
			return Badness(a)
		}
		slices.SortStableFunc(d.Accounts, func(a, b store.DescribedAccount) int { return -cmp.Compare(of(a), of(b)) })
	}
	slices.SortStableFunc(all, func(a, b store.Description) int {
		return cmp.Or(-cmp.Compare(worst[a.Budget], worst[b.Budget]), strings.Compare(a.Budget, b.Budget))
	})
}

func badness(d store.Description) float64 {
	worst := 0.0
	for _, p := range d.Pauses {
		if p.Account == "" && p.Key == "" {
			worst = 3
		}
	}
	if len(d.Quarantined) > 0 {
		worst = max(worst, 2)
	}
	for _, a := range d.Accounts {
		worst = max(worst, Badness(a))
	}
	return worst
}

// Badness is 2 of an account that is paused, 1.5 of one that is kept to a pace, and otherwise the share of its tightest limit that is used
// or booked ahead.
func Badness(a store.DescribedAccount) float64 {
	worst := 0.0
	if a.PausedUntil.After(a.Now) {
		worst = 2
	}
	if len(a.Paces) > 0 {
		worst = max(worst, 1.5)
	}
	for _, l := range a.Limits {
		worst = max(worst, float64(l.Used+l.Ahead)/float64(max(1, l.Used+l.Ahead+l.Remaining)))
	}
	return worst
}

// Name returns what people call an account: its label, or the beginning of its ID.
func Name(a store.DescribedAccount) string {
	if a.Label != "" {
		return Printable(a.Label)
	}
	return ShortID(a.Account)
}

// NameOf returns the Name of the account with that ID.
func NameOf(accounts []store.DescribedAccount, id string) string {
	for _, a := range accounts {
		if a.Account == id {
			return Name(a)
		}
	}
	return ShortID(id)
}

// ShortID returns the beginning of a digest, which is enough to tell it apart, and of a meter's ID its unit as well.
func ShortID(id string) string {
	if len(id) > digest.Length+1 && id[digest.Length] == '_' {
		return id[:12] + id[digest.Length:]
	}
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

// Printable returns a text without what could steer a terminal: labels and causes come from outside.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

// Round returns a time as exact as people read it.
func Round(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// Paused returns what a pause holds back, in words.
func Paused(accounts []store.DescribedAccount, p store.Pause) string {
	what := "all accounts"
	if p.Account != "" {
		what = NameOf(accounts, p.Account)
	}
	if p.Key != "" {
		what = nameOfPart(p) + " of " + what
	}
	return what + " paused"
}

// Short returns a time as people read it: "5m" and not "5m0s".
func Short(d time.Duration) string {
	s := Round(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Limit returns a limit as a program writes it: without the margin that a budget adds.
func Limit(l limit.Limit) string {
	if l.Margin == l.DefaultMargin() {
		l.Margin = 0
	}
	return l.String()
}

// Measure returns what a limit counts in which time, and not how much of it is allowed: "1h", "24h unit=tokens". Metrics are labelled with it,
// so that a series goes on when a limit is raised or lowered.
func Measure(l limit.Limit) string {
	text := Short(l.Window)
	if l.InFlight > 0 {
		text = "in flight"
	}
	for _, part := range []struct{ name, value string }{{"unit", l.Unit}, {"per", l.Per}, {"scope", l.Scope}} {
		if part.value != "" {
			text += " " + part.name + "=" + part.value
		}
	}
	return text
}

// Limits writes some as Limit does.
func Limits(all []limit.Limit) (texts []string) {
	for _, l := range all {
		texts = append(texts, Limit(l))
	}
	return texts
}

// Waiting returns how many callers wait, whatever for.
func Waiting(reasons map[string]int) (n int) {
	for _, one := range reasons {
		n += one
	}
	return n
}
