package view

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/internal/rates"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A State is how an account is.
type State int

// The states of an account, the best first.
const (
	StateFree        State = iota // something may be booked at once
	StateSpent                    // nothing is left, which is normal in a fleet that is at work
	StatePaused                   // the account is
	StateQuarantined              // its token was rejected by the provider, and was not served since
)

// String returns "free", "spent", "paused" or "quarantined".
func (s State) String() string { return [...]string{"free", "spent", "paused", "quarantined"}[s] }

// WorstOf returns the worst state of an account under its limits.
func WorstOf(d *store.Description, a store.DescribedAccount) State {
	worst, _, _ := StateOf(d, a, store.LimitUsage{Remaining: 1}) // whatever its limits, of which it may have none
	for _, l := range a.Limits {
		state, _, _ := StateOf(d, a, l)
		worst = max(worst, state)
	}
	return worst
}

// StateOf returns the state of an account under one of its limits, in words, and when that may end; zero: it is free, or nobody
// knows.
func StateOf(d *store.Description, a store.DescribedAccount, l store.LimitUsage) (state State, words string, until time.Time) {
	q, dead := quarantined(d, a.Account)
	switch {
	case dead && q.Until.After(a.Now):
		return StateQuarantined, Printable(q.Reason) + tried(q), q.Until
	case dead:
		return StateQuarantined, Printable(q.Reason) + tried(q), time.Time{}
	case a.PausedUntil.After(a.Now): // also by a pause of all
		return StatePaused, "paused", a.PausedUntil
	case a.SpentUntil.After(a.Now):
		return StateSpent, "spent", a.SpentUntil
	case l.Remaining == 0:
		return StateSpent, "spent", l.FreeAt
	}
	return StateFree, "free", time.Time{}
}

// tried says how often a token was.
func tried(q store.Quarantine) string {
	switch {
	case q.Probing:
		return ", a request tries it"
	case q.Count > 1:
		return fmt.Sprintf(", tried %d times", q.Count)
	}
	return ""
}

// quarantined returns the last quarantine of the token that an account has been named by.
func quarantined(d *store.Description, account string) (last store.Quarantine, found bool) {
	for _, q := range d.Quarantined {
		if q.Token == account && !q.Until.Before(last.Until) {
			last, found = q, true
		}
	}
	return last, found
}

// IsMeter reports whether an account counts another unit than calls of one, or one value of a key.
func IsMeter(account string) bool {
	return len(account) > digest.Length+1 && account[digest.Length] == '_'
}

// A Summary is how the accounts of a budget are, and what its callers do.
type Summary struct {
	Accounts int                       // those that only count another unit are not among them
	In       [StateQuarantined + 1]int // by their state, which is the worst of their limits
	Next     time.Time                 // when the first account that is spent is free again; zero: none is
	Waiting  map[string]int            // how many callers wait, by what for
	InFlight int                       // how many requests were sent and not answered
	Silent   int                       // how many processes were not heard of for so long that they have ended, or hang
	Stalled  bool                      // nothing can leave before a pause ends, or a token is served

	Used, Ahead    float64               // the parts of the quota that are used and booked ahead: see UsedOf
	SlotsPerSecond float64               // how many callers get their slot a second
	Answers        map[string]int        // how many requests were answered in the last minute, by class
	Refused        int                   // how many responses refused a request in the last minute
	Failed         []store.FailedAnswers // the most frequent of those that were no success, by account and endpoint

	Longest      time.Duration   // how long the caller waits that has waited longest
	Waited, Took store.Histogram // how long callers waited in the last minute, and how long responses took
	Failing      int             // how many processes have callers that got nothing in the last minute, by their own fault
}

// Summarize returns the summary of a budget.
func Summarize(d *store.Description) Summary {
	s := SummarizeWorkers(d)
	s.Used, s.Ahead = UsedOf(d)
	for _, a := range d.Accounts {
		if IsMeter(a.Account) {
			continue
		}
		worst := WorstOf(d, a)
		if next := freeAt(a); worst == StateSpent && (s.Next.IsZero() || next.Before(s.Next)) {
			s.Next = next
		}
		s.Accounts++
		s.In[worst]++
	}
	s.Stalled = s.Accounts > 0 && s.In[StatePaused]+s.In[StateQuarantined] == s.Accounts
	return s
}

// UsedOf returns which parts of the quota are used and booked ahead: the means over the accounts, of each its fullest limit.
func UsedOf(d *store.Description) (used, ahead float64) {
	accounts := 0
	for _, a := range d.Accounts {
		if IsMeter(a.Account) {
			continue
		}
		accounts++
		fullest, longest := 0.0, 0.0
		for _, l := range a.Limits {
			capacity := float64(max(1, l.Limit.Capacity()))
			fullest, longest = max(fullest, float64(l.Used)/capacity), max(longest, float64(l.Ahead)/capacity)
		}
		used, ahead = used+fullest, ahead+longest
	}
	n := float64(max(1, accounts))
	return used / n, ahead / n
}

// SummarizeWorkers returns what a summary says of the workers, and nothing of the accounts.
func SummarizeWorkers(d *store.Description) Summary {
	s := Summary{Waiting: make(map[string]int), Answers: make(map[string]int)}
	failed := make(map[store.FailedAnswers]int)
	for _, w := range d.Workers {
		if IsSilent(d, w) {
			s.Silent++
			continue
		}
		for reason, n := range w.Load.Waiting {
			s.Waiting[reason] += n
		}
		s.InFlight += w.Load.InFlight
		if w.Load.LongestWait > 0 { // the worker tells soon when the caller has its slot
			s.Longest = max(s.Longest, w.Load.LongestWait+max(0, d.Now.Sub(w.Seen)))
		}
		s.Waited, s.Took = s.Waited.Add(w.Load.Waited), s.Took.Add(w.Load.Took)
		if w.Load.Process.Error != "" {
			s.Failing++
		}
		s.SlotsPerSecond += w.Load.SlotsPerSecond
		for class, n := range w.Load.Answers {
			s.Answers[class] += n
		}
		s.Refused += w.Load.RefusedLastMinute
		for _, one := range w.Load.Failed {
			n := one.Count
			one.Count = 0
			failed[one] += n
		}
	}
	s.Failed = rates.Sorted(failed, mostFailedShown)
	return s
}

// freeAt returns when every limit of an account has room.
func freeAt(a store.DescribedAccount) (at time.Time) {
	for _, l := range a.Limits {
		if l.Remaining == 0 {
			at = later(at, l.FreeAt)
		}
	}
	return at
}

// String returns the summary as a part of a line: "49 paused, 1 free; 24 waiting: 20 for pause, 4 for quota".
func (s Summary) String() string {
	text := s.Accountwise()
	if waits := WaitingFor(s.Waiting); waits != "" {
		text += "; " + waits
	}
	return text
}

// Rates returns how fast the budget is used, as a line: "3.2 calls/s, 2 refused/min, 63 % of the quota used; answered in the last minute: 305
// with 401".
func (s Summary) Rates() string {
	text := fmt.Sprintf("%s calls/s, %d refused/min, %.0f %% of the quota used", PerSecond(s.SlotsPerSecond), s.Refused, 100*s.Used)
	var failed []string
	for _, class := range rates.Names[1:] {
		if n := s.Answers[class]; n > 0 && class != "429" { // which are refusals
			failed = append(failed, fmt.Sprintf("%d with %s", n, strings.TrimPrefix(class, "other ")))
		}
	}
	if failed != nil {
		text += "; answered in the last minute: " + strings.Join(failed, ", ")
	}
	return text
}

// mostFailedShown is how many accounts and endpoints people are shown.
const mostFailedShown = 3

// Failures returns which requests were not served most often, as a line: "not served: 300 with 401 of ann at GET https://api.test/users/*". Empty:
// all were.
func (s Summary) Failures(accounts []store.DescribedAccount) string {
	var parts []string
	for _, one := range s.Failed {
		parts = append(parts, fmt.Sprintf("%d with %s of %s at %s", one.Count, Printable(one.Class), NameOf(accounts, one.Account), Printable(one.Endpoint)))
	}
	if parts == nil {
		return ""
	}
	return "not served: " + strings.Join(parts, "; ")
}

// Waits returns how long callers wait, and the provider takes, as a line: "callers waited 1.2s, 99 of 100 at most 4s; the longest waits 3s,
// and all who wait for quota have their slots in 5s; answers took 80ms, 99 of 100 at most 300ms". Empty: nothing is known.
func (s Summary) Waits() string {
	var parts []string
	if s.Waited.Count() > 0 {
		parts = append(parts, fmt.Sprintf("callers waited %s, 99 of 100 at most %s", Short(s.Waited.Mean()), Short(s.Waited.Quantile(0.99))))
	}
	if s.Longest > 0 {
		longest := "the longest waits " + Short(s.Longest)
		if n := s.Drain(); n > 0 {
			longest += fmt.Sprintf(", and all who wait for quota have their slots in %s", Short(n))
		}
		parts = append(parts, longest)
	}
	if s.Took.Count() > 0 {
		parts = append(parts, fmt.Sprintf("answers took %s, 99 of 100 at most %s", Short(s.Took.Quantile(0.5)), Short(s.Took.Quantile(0.99))))
	}
	return strings.Join(parts, "; ")
}

// Drain returns how long it takes until all that wait for quota now have their slots, at the rate of now; zero: nobody does, or nothing is
// granted.
func (s Summary) Drain() time.Duration {
	if s.SlotsPerSecond == 0 {
		return 0
	}
	return time.Duration(float64(s.Waiting[rationtrace.Quota.String()]) / s.SlotsPerSecond * float64(time.Second))
}

// Line returns how long the line of callers is, in words; "": somebody who comes now need not wait for quota.
func (s Summary) Line(now time.Time) string {
	if s.In[StateFree] > 0 || s.In[StateSpent] == 0 || !s.Next.After(now) {
		return ""
	}
	return "the quota is spent, which is normal: a new caller waits " + Short(s.Next.Sub(now))
}

// PerSecond returns a rate with as many digits as say something.
func PerSecond(rate float64) string {
	if rate == 0 || rate >= 10 {
		return fmt.Sprintf("%.0f", rate)
	}
	return fmt.Sprintf("%.2g", rate)
}

// Accountwise returns how the accounts are: "49 paused, 1 free".
func (s Summary) Accountwise() string {
	var parts []string
	for state := StateQuarantined; state >= StateFree; state-- {
		if n := s.In[state]; n > 0 {
			parts = append(parts, fmt.Sprint(n, " ", state))
		}
	}
	return strings.Join(parts, ", ")
}

// InFlightText says what is used of a limit of calls in flight.
func InFlightText(p store.Permits) string {
	return fmt.Sprintf("%d of %d calls in flight of %s; workers have %d permits", p.Used, p.Max, Printable(p.Label), p.Share)
}

// WaitingFor says how many callers wait, and what for; "": nobody does.
func WaitingFor(waiting map[string]int) string {
	all := 0
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(waiting)) {
		all += waiting[reason]
		why = append(why, fmt.Sprintf("%d for %s", waiting[reason], Printable(reason)))
	}
	switch len(why) {
	case 0:
		return ""
	case 1:
		_, reason, _ := strings.Cut(why[0], " for ")
		return fmt.Sprintf("%d waiting for %s", all, reason)
	}
	return fmt.Sprintf("%d waiting: %s", all, strings.Join(why, ", "))
}

// silentAfter is how long after it was last heard of a worker has ended, or hangs: it tells of itself each ten seconds.
const silentAfter = 25 * time.Second

// IsSilent reports whether a worker has not been heard of for so long that what its callers did is not known any more. One that said that
// it has nothing to do says nothing until it has.
func IsSilent(d *store.Description, w store.Worker) bool {
	return d.Now.Sub(w.Seen) > silentAfter && !w.Load.IsIdle()
}

// A Holdup is what holds back some accounts, or tokens, by one cause.
type Holdup struct {
	What     string    // "49 of 50 accounts paused", say
	First    time.Time // when the first of them is free
	Until    time.Time // when the last of them is; zero: nobody knows
	Cause    string    // what made it, in words; of several what they have in common
	Accounts []string  // IDs of those that are paused; nil: all, or a token
	Tokens   bool      // these are tokens, which are tried again then, and not pauses, which end
	Token    string    // the ID, if it is one
	Endpoint string    // what was refused, "GET https://api.test/likes/*"; of a part of which that is not known its key; "": one whole account, or not known
	Part     bool      // the Endpoint alone is paused
	Stalls   bool      // nothing else can leave
}

// For says how long it lasts from an instant on, behind What.
func (h *Holdup) For(now time.Time) string {
	if h.Until.IsZero() {
		return ""
	}
	first, last := max(0, h.First.Sub(now)), max(0, h.Until.Sub(now))
	text := Short(last)
	if last-first > last/10 {
		text = Short(first) + " to " + text
	}
	switch {
	case !h.Tokens:
		return " for " + text + " more"
	case last == 0:
		return ", tried again now"
	}
	return ", tried again in " + text
}

// plainWord is what a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[\w.:@/][\w.:@/-]*$`)

// shellWord returns a text, which comes from outside, as one word of a command to be copied into a shell.
func shellWord(text string) string {
	text = Printable(text)
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Cure says what ends it, and the command for that; "": no command does.
func (h *Holdup) Cure(budget string) (what, command string) {
	budget = shellWord(budget)
	switch {
	case h.Part:
		of := budget
		if len(h.Accounts) == 1 {
			of += " " + shellWord(ShortID(h.Accounts[0]))
		}
		return "to end it", fmt.Sprintf("ration resume %s -endpoint %s", of, shellWord(h.Endpoint))
	case h.Endpoint != "":
		return "if it limits that endpoint alone, free the rest",
			fmt.Sprintf("ration resume %s -except-endpoint %s", budget, shellWord(h.Endpoint))
	case h.Token != "":
		return "replace the token; if it works again, have it tried at once", fmt.Sprintf("ration resume %s -token %s", budget, shellWord(ShortID(h.Token)))
	case len(h.Accounts) == 1:
		return "to end it", fmt.Sprintf("ration resume %s %s", budget, shellWord(ShortID(h.Accounts[0])))
	case !h.Until.IsZero() && !h.Tokens:
		return "to end it", "ration resume " + budget
	}
	return "", ""
}

// Holdups returns what holds callers back: what is paused or quarantined, and then what else does. With an account it is what concerns that.
func Holdups(d *store.Description, account string) []Holdup {
	return append(Stopped(d, account, ""), conditions(d, Summarize(d))...)
}

// Stopped returns what is paused or quarantined in a budget, those of one cause as one, what concerns most first. With an account or a token it
// is what concerns that.
func Stopped(d *store.Description, account, token string) (all []Holdup) {
	s := Summarize(d)
	type kind struct{ what, cause string }
	members := make(map[kind][]store.Pause)
	var order []kind
	for _, p := range d.Pauses {
		if token != "" || account != "" && p.Account != "" && p.Account != account {
			continue
		}
		of := kind{what: "whole", cause: common(p.Cause)}
		switch {
		case p.Key != "":
			of.what = "part"
			if refused(p) == "" {
				of.what += " " + p.Key
			}
			if p.Account == "" {
				of.what += " of all"
			}
		case p.Account == "":
			of.what = "all"
		}
		if members[of] == nil {
			order = append(order, of)
		}
		members[of] = append(members[of], p)
	}
	for _, of := range order {
		all = append(all, pausesAsOne(d, members[of], s.Accounts))
	}
	quarantines := make(map[kind][]store.Quarantine)
	order = nil
	for _, q := range d.Quarantined {
		if of := cmp.Or(token, account); of != "" && q.Token != of {
			continue
		}
		of := kind{q.Reason, common(q.Cause)}
		if quarantines[of] == nil {
			order = append(order, of)
		}
		quarantines[of] = append(quarantines[of], q)
	}
	for _, of := range order {
		all = append(all, quarantinesAsOne(d, quarantines[of]))
	}
	for i := range all {
		all[i].Stalls = s.Stalled
	}
	slices.SortStableFunc(all, func(a, b Holdup) int { return cmp.Compare(len(b.Accounts), len(a.Accounts)) })
	return all
}

// conditions are what holds callers back and is neither a pause nor a quarantine.
func conditions(d *store.Description, s Summary) (all []Holdup) {
	if n := s.Waiting[rationtrace.Source.String()]; n > 0 {
		all = append(all, Holdup{What: fmt.Sprintf("%s waiting for a token's secret, in %s", Counted(n, "caller"), whoWaits(d, rationtrace.Source)),
			Cause: "its source is slow, or fails: the log of these workers has the error, as SourceFailed"})
	}
	if n := s.Waiting[rationtrace.StoreDown.String()]; n > 0 {
		all = append(all, Holdup{What: fmt.Sprintf("%s waiting for Redis, in %s", Counted(n, "caller"), whoWaits(d, rationtrace.StoreDown)),
			Cause: "these workers could not reach Redis for a time, or still cannot: look at their network and their log"})
	}
	if at, n := lostLog(d); n > 0 {
		all = append(all, Holdup{What: fmt.Sprintf("Redis lost what was booked, %s ago", Short(d.Now.Sub(at))),
			Cause: "it was restarted or flushed, or evicts keys: " + Counted(n, "worker") + " recorded their bookings again, nothing left for 2s"})
	}
	all = append(all, failing(d)...)
	for _, w := range d.Workers {
		if IsSilent(d, w) {
			all = append(all, Holdup{What: fmt.Sprintf("worker %s was last heard of %s ago", Printable(w.ID), Short(d.Now.Sub(w.Seen))),
				Cause: "it has ended, or hangs: nobody waits for it, and what it had booked and not sent stays used for a window"})
			break // the headline says how many there are
		}
	}
	return all
}

// lossFor is how long people are told of a loss.
const lossFor = 10 * time.Minute

// lostLog returns when the store last lost what was booked, and how many workers have recorded it again; 0: nothing was lost of
// late.
func lostLog(d *store.Description) (at time.Time, workers int) {
	for _, w := range d.Workers {
		switch lost := w.Load.LogLost; {
		case d.Now.Sub(lost) > lossFor || lost.Before(at):
		case lost.Equal(at):
			workers++
		default:
			at, workers = lost, 1
		}
	}
	return at, workers
}

// whoWaits names a worker in which callers wait for a reason, and how many more there are.
func whoWaits(d *store.Description, why rationtrace.Reason) string {
	var names []string
	for _, w := range d.Workers {
		if w.Load.Waiting[why.String()] > 0 && !IsSilent(d, w) {
			names = append(names, Printable(w.ID))
		}
	}
	if more := len(names) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", names[0], more)
	}
	return strings.Join(names, "")
}

// Headline returns a budget, its accounts, its workers and what they do, as a line.
func Headline(d *store.Description, s Summary) string {
	text := fmt.Sprintf("%s: %s, %s", Printable(d.Budget), Counted(s.Accounts, "account"), Counted(len(d.Workers), "worker"))
	if s.Silent > 0 {
		text += fmt.Sprintf(", %d of them silent", s.Silent)
	}
	if about := s.String(); about != "" {
		text += ": " + about
	}
	return text
}

// Counted returns "1 account", or "2 accounts".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func pausesAsOne(d *store.Description, pauses []store.Pause, accounts int) Holdup {
	first := pauses[0]
	h := Holdup{What: Paused(d.Accounts, first), First: first.Until, Until: first.Until, Cause: Printable(first.Cause)}
	of := make(map[string]bool)
	for _, p := range pauses {
		h.First, h.Until = earlier(h.First, p.Until), later(h.Until, p.Until)
		if p.Account != "" {
			of[p.Account] = true
		}
	}
	h.Accounts = slices.Sorted(maps.Keys(of))
	endpoint := Printable(refused(first))
	if first.Key != "" {
		h.Part, h.Endpoint = true, cmp.Or(endpoint, first.Key)
	}
	if len(pauses) == 1 {
		return h
	}
	whose := fmt.Sprintf("%d of %d accounts", len(of), max(accounts, len(of)))
	switch {
	case len(of) == 0:
		whose = "all accounts"
	case len(of) == 1:
		whose = NameOf(d.Accounts, h.Accounts[0])
	}
	h.Cause = Printable(asCommon(first.Cause))
	switch {
	case first.Key == "":
		h.What, h.Endpoint = whose+" paused", endpoint
	case len(of) < len(pauses):
		h.What = fmt.Sprintf("%d parts of %s paused", len(pauses), whose)
	case slices.ContainsFunc(pauses, func(p store.Pause) bool { return p.Key != first.Key }):
		h.What = "a part of " + whose + " paused"
	default:
		h.What = nameOfPart(first) + " of " + whose + " paused"
	}
	return h
}

func quarantinesAsOne(d *store.Description, all []store.Quarantine) Holdup {
	first := all[0]
	h := Holdup{First: first.Until, Until: first.Until, Cause: Printable(first.Cause), Tokens: true, Token: first.Token}
	for _, q := range all {
		h.First, h.Until = earlier(h.First, q.Until), later(h.Until, q.Until)
	}
	h.What = "token " + NameOf(d.Accounts, first.Token) + " quarantined (" + Printable(first.Reason) + tried(first) + ")"
	if len(all) > 1 {
		h.What, h.Token, h.Cause = fmt.Sprintf("%d tokens quarantined (%s)", len(all), Printable(first.Reason)), "", Printable(asCommon(first.Cause))
	}
	return h
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

var (
	asked = regexp.MustCompile(`, which (asks for [^ ,]+|names no time)`)
	told  = regexp.MustCompile(` \(told by ([^()]*)\)$`)
)

// common returns what causes have in common that are one to people: the response and the endpoint, whoever tells of it, and
// whatever object it is about.
func common(cause string) string {
	return withoutIDs(told.ReplaceAllString(asked.ReplaceAllString(cause, ""), ""))
}

// asCommon returns the cause of the first of several.
func asCommon(cause string) string {
	text := common(cause)
	if by := told.FindStringSubmatch(cause); by != nil {
		text += " (first told by " + by[1] + ")"
	}
	return text
}
