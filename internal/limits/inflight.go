package limits

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/internal/permits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// Limits of calls in flight are kept by package permits, and by no meter: a call takes permits, which come back when it ends.

// Permits returns what a request with those scopes takes permits of, charged to each account of the list in turn.
func (l *List) Permits(scopes []string) []permits.Set {
	if l.permits != nil {
		return l.permits
	}
	return l.permitsWith(scopes)
}

// keepPermits makes what Permits returns once, if the scopes of requests do not decide, for requests with those values.
func (l *List) keepPermits(values map[string]string) {
	l.permits, l.values = nil, values
	if l.TakesPermits = len(l.inFlight)+len(l.inFlightShared) > 0; !l.TakesPermits {
		return
	}
	if l.Keyed != nil && values == nil || slices.ContainsFunc(l.inFlight, func(o limit.Limit) bool { return o.Scope != "" }) {
		return
	}
	l.permits = l.permitsWith(nil)
}

func (l *List) permitsWith(scopes []string) []permits.Set {
	all := make([]permits.Set, len(l.Each))
	for i := range l.Each {
		account := &l.Each[i]
		for _, o := range l.inFlight {
			if o.Scope != "" && !slices.Contains(scopes, o.Scope) || o.Per != "" && l.values[o.Per] == "" {
				continue
			}
			all[i].Limits = append(all[i].Limits, permitsOf(&o, account.ID, account.Label, l.values[o.Per]))
		}
		all[i].Account, all[i].Limits = account.ID, append(all[i].Limits, l.inFlightShared...)
	}
	return all
}

// permitsOf returns a limit of calls in flight as one of an account, and of a value of what it counts apart.
func permitsOf(l *limit.Limit, account, label, value string) permits.Limit {
	unit, words := "inflight", []string{cmp.Or(label, account[:min(len(account), 12)])}
	if l.Per != "" || l.Scope != "" {
		unit += "-" + digest.Of("", "inflight", l.Scope+" "+l.Per+" "+value)[:10]
	}
	if l.Per != "" {
		words = append(words, l.Per+"="+printable(value))
	}
	if l.Scope != "" {
		words = append(words, "scope="+l.Scope)
	}
	name := store.MeterID(account, unit)
	if !store.ValidAccountID(name) { // it is too long
		name = digest.Of("", "inflight", name)
	}
	return permits.Limit{Name: name, Label: shortened(strings.Join(words, " "), store.MaxLabel), Account: account, Max: l.InFlight}
}
