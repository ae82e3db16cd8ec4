package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

// onePage is how many accounts a page has.
const onePage = 50

// A page is what is shown at an address.
type page struct {
	Template string // "budgets", "budget" or "account"
	Root     string // the way from here to the first page
	Title    string
	Query    string // what is searched for
	Actions  bool

	At, Since string // when the store was read, and when first
	Error     string // why it could not be read since; "": it could

	Budgets  []budgetRow
	Budget   *budgetView
	Accounts []accountRow
	Account  *accountView
	Pages    pager

	json any // the same for programs
}

// A pager leads to other pages of a list.
type pager struct {
	Number, Count, Items int
	Before, After        string // addresses; "": there is none
}

// A budgetRow is a budget at a glance.
type budgetRow struct {
	Name, Link        string
	Sum               accountRow // of all accounts, for the bar
	Accounts, Workers int
	Waiting, InFlight int
	Used, Rate, Most  string // percent; calls a second, and the most in the last hour
	Refused           int    // in the last minute
	Spark             string
	State, Class      string // how it is, in words, and what marks that
}

// An accountRow is a limit of an account.
type accountRow struct {
	Name, Link, Limit            string
	Used, Ahead                  int
	Left                         string
	UsedPart, AheadPart, LineEnd float64 // of a bar of 100
	State, Class, Next           string
}

// A holdup is a pause, a quarantine, or what else holds calls back.
type holdup struct {
	What, For, Cause string
	Cure, Command    string // what ends it at a terminal; "": Resume does, or nothing
	Resume           string // where to end it; "": nobody may, or nothing does
	All              bool   // and all others with it
}

// A workerRow is a process and its queue.
type workerRow struct {
	Name, Heard       string
	Waiting, InFlight int
	Reasons           []reason
	Silent            bool     // it has ended, or hangs
	Rate              string   // calls a second
	Given             string   // its limits
	Odd               []string // what is unusual about it
}

type reason struct {
	Name  string
	Count int
}

type newsRow struct{ At, Budget, What, Cause string }

// A budgetView is what one budget has beside its accounts.
type budgetView struct {
	Name, Link string
	How, Class string // how its accounts are, in words, and what marks that
	Rates      string // how fast it is used, in words
	Waits      string // how long callers wait, in words
	Failures   string // which requests were not served most often, in words
	Line       string // how long a new caller waits, in words
	Spark      string
	Most       string // calls a second that the sparkline shows
	Reasons    []reason
	InFlight   int
	Holdups    []holdup
	Resumes    bool // a form resumes all of it
	Workers    []workerRow
	News       []newsRow
}

// An accountView is one account.
type accountView struct {
	Name, ID, Link, Query string
	Charts                []chart
	Spans                 []spanRow
	Holdups               []holdup
	News                  []newsRow
}

// A spanRow leads to the same charts over another time.
type spanRow struct {
	Name  string
	Shown bool
}

// newPage returns a page with what all have.
func (h *Handler) newPage(r *http.Request, s *snapshot, template string) *page {
	p := &page{Template: template, Root: rootFrom(r.URL), Query: r.URL.Query().Get("q"), Actions: h.Actions, Title: "Budgets"}
	p.Since = s.begun.UTC().Format(time.TimeOnly)
	if !s.at.IsZero() {
		p.At = s.at.UTC().Format(time.TimeOnly)
	}
	if s.err != nil {
		p.Error = view.Printable(s.err.Error())
	}
	return p
}

// rootFrom returns the way from an address to the first page, wherever the Handler is mounted.
func rootFrom(u *url.URL) string {
	return cmp.Or(strings.Repeat("../", strings.Count(u.EscapedPath(), "/")-1), "./")
}

// budgetsPage shows all budgets.
func (h *Handler) budgetsPage(r *http.Request, s *snapshot) *page {
	p := h.newPage(r, s, "budgets")
	all := []view.Budget{}
	for i := range s.all {
		d := &s.all[i]
		if !strings.Contains(strings.ToLower(d.Budget), strings.ToLower(p.Query)) {
			continue
		}
		link := p.Root + "b/" + url.PathEscape(d.Budget)
		row := budgetRow{Name: view.Printable(d.Budget), Link: link, Workers: len(d.Workers)}
		sum := view.Summarize(d)
		row.Accounts, row.InFlight, row.State, row.Class = sum.Accounts, sum.InFlight, sum.Accountwise(), classOf(sum)
		for _, n := range sum.Waiting {
			row.Waiting += n
		}
		row.Used, row.Rate, row.Refused = fmt.Sprintf("%.0f %%", 100*sum.Used), view.PerSecond(sum.SlotsPerSecond), sum.Refused
		row.Sum = sumOf(d, sum)
		line, most := s.sparkline(d.Budget)
		row.Spark, row.Most = line, view.PerSecond(most)
		p.Budgets = append(p.Budgets, row)
		all = append(all, view.Of(*d))
	}
	from, to := p.Pages.cut(r, len(p.Budgets))
	p.Budgets, p.json = p.Budgets[from:to], all
	return p
}

// budgetPage shows one budget.
func (h *Handler) budgetPage(r *http.Request, s *snapshot) *page {
	d := s.find(r.PathValue("budget"))
	if d == nil {
		return nil
	}
	p := h.newPage(r, s, "budget")
	p.Title = view.Printable(d.Budget)
	sum := view.Summarize(d)
	b := &budgetView{Name: p.Title, Link: p.Root + "b/" + url.PathEscape(d.Budget), How: sum.Accountwise(), Class: classOf(sum), InFlight: sum.InFlight, Holdups: h.holdups(d, p.Root, ""), News: newsOf(s, d.Budget, "")}
	b.Resumes = slices.ContainsFunc(b.Holdups, func(one holdup) bool { return one.Resume != "" })
	for _, w := range view.Workers(d) {
		row := workerRow{
			Name: view.Printable(w.ID), Heard: left(d.Now, w.Seen), Rate: view.PerSecond(w.Load.SlotsPerSecond), Waiting: view.Waiting(w.Load.Waiting),
			InFlight: w.Load.InFlight, Reasons: reasonsOf(w.Load.Waiting), Given: view.LimitsGiven(w.Load.Process), Odd: w.Odd,
		}
		if w.Silent {
			row = workerRow{Name: row.Name, Heard: row.Heard, Silent: true, Given: row.Given, Odd: row.Odd}
		}
		b.Workers = append(b.Workers, row)
	}
	b.Reasons, p.Budget = reasonsOf(sum.Waiting), b
	if sum.Accounts > 0 {
		line, most := s.sparkline(d.Budget)
		b.Rates, b.Waits, b.Line, b.Spark, b.Most = sum.Rates(), sum.Waits(), sum.Line(d.Now), line, view.PerSecond(most)
		b.Failures = sum.Failures(d.Accounts)
	}
	var found []store.DescribedAccount
	for _, a := range d.Accounts {
		if strings.Contains(strings.ToLower(view.Name(a)+" "+a.Account), strings.ToLower(p.Query)) {
			found = append(found, a)
		}
	}
	from, to := p.Pages.cut(r, len(found))
	for _, a := range found[from:to] {
		p.Accounts = append(p.Accounts, rowsOf(d, a, b.Link)...)
	}
	p.json = view.Of(*d)
	return p
}

// accountPage shows one account.
func (h *Handler) accountPage(r *http.Request, s *snapshot) *page {
	d := s.find(r.PathValue("budget"))
	if d == nil {
		return nil
	}
	i := slices.IndexFunc(d.Accounts, func(a store.DescribedAccount) bool { return a.Account == r.PathValue("account") })
	if i < 0 {
		return nil
	}
	a := d.Accounts[i]
	p := h.newPage(r, s, "account")
	p.Title = view.Name(a)
	link := p.Root + "b/" + url.PathEscape(d.Budget)
	p.Budget = &budgetView{Name: view.Printable(d.Budget), Link: link}
	p.Account = &accountView{Name: p.Title, ID: view.Printable(a.Account), Link: link + "/a/" + url.PathEscape(a.Account), Query: url.QueryEscape(a.Account),
		Holdups: h.holdups(d, p.Root, a.Account), News: newsOf(s, d.Budget, a.Account)}
	answer := accountAnswer{Budget: d.Budget, SampledSince: s.begun.UTC()}
	span := spanOf(r)
	for _, one := range slices.Sorted(slices.Values(spans)) {
		p.Account.Spans = append(p.Account.Spans, spanRow{view.Short(one), one == span})
	}
	for place, l := range a.Limits {
		p.Account.Charts = append(p.Account.Charts, chartOf(s, d, a, place, span))
		answer.add(view.Limit(l.Limit), s.series[seriesKey{d.Budget, a.Account, place}].over(span, s.at))
	}
	one := *d
	one.Accounts = []store.DescribedAccount{a}
	answer.Account = view.Of(one).Accounts[0]
	p.json = answer
	return p
}

// sumOf returns what fills the bar of a budget: the mean of what its accounts use and have booked ahead of their fullest limits.
func sumOf(d *store.Description, s view.Summary) (row accountRow) {
	row.LineEnd = lineAt
	for _, a := range d.Accounts {
		for _, l := range a.Limits {
			row.Used, row.Ahead = row.Used+l.Used, row.Ahead+l.Ahead
		}
	}
	row.UsedPart = min(100, lineAt*s.Used)
	row.AheadPart = min(100-row.UsedPart, lineAt*s.Ahead)
	return row
}

// classOf returns what marks how a budget is: that nothing moves, that a part does not, or neither.
func classOf(s view.Summary) string {
	switch {
	case s.Stalled:
		return "paused"
	case s.In[view.StatePaused]+s.In[view.StateQuarantined] > 0:
		return "part"
	}
	return "free"
}

// lineAt is where the limit is in each bar, of 100: what lies behind is booked ahead.
const lineAt = 80

// rowsOf returns a row for each limit of an account.
func rowsOf(d *store.Description, a store.DescribedAccount, budget string) (rows []accountRow) {
	for _, l := range a.Limits {
		row := accountRow{Name: view.Name(a), Link: budget + "/a/" + url.PathEscape(a.Account), Limit: view.Limit(l.Limit),
			Used: l.Used, Ahead: l.Ahead, Left: strconv.Itoa(l.Remaining), LineEnd: lineAt}
		part := lineAt / float64(max(1, l.Limit.Capacity()))
		row.UsedPart = min(100, part*float64(l.Used))
		row.AheadPart = min(100-row.UsedPart, part*float64(l.Ahead))
		state, words, until := view.StateOf(d, a, l)
		if row.State, row.Class = words+view.PaceText(a, l), state.String(); state >= view.StatePaused {
			row.Left = "-" // of which nothing can be used
		}
		if until.After(a.Now) {
			row.Next = left(until, a.Now)
		}
		rows = append(rows, row)
	}
	return rows
}

// holdups returns what holds calls back; with an account, what concerns it.
func (h *Handler) holdups(d *store.Description, root, only string) (all []holdup) {
	resume := func(what url.Values) string {
		if !h.Actions {
			return ""
		}
		return root + "b/" + url.PathEscape(d.Budget) + "/do/resume?" + what.Encode()
	}
	for _, one := range view.Holdups(d, only) {
		h := holdup{What: one.What, For: one.For(d.Now), Cause: one.Cause}
		account := "" // all
		if len(one.Accounts) == 1 {
			account = one.Accounts[0]
		}
		switch {
		case one.Until.IsZero(): // there is nothing to resume
		case one.Token != "":
			h.Resume = resume(url.Values{"token": {one.Token}})
		case one.Part:
			h.Resume = resume(url.Values{"account": {account}, "endpoint": {one.Endpoint}})
		default:
			h.Resume, h.All = resume(url.Values{"account": {account}}), account == ""
		}
		if h.Resume == "" || one.Endpoint != "" && !one.Part {
			h.Cure, h.Command = one.Cure(d.Budget)
		}
		all = append(all, h)
	}
	return all
}

// newsOf returns what was seen to begin of a budget or one of its accounts, the newest first.
func newsOf(s *snapshot, budget, account string) (rows []newsRow) {
	for _, item := range slices.Backward(s.news) {
		if item.Budget == budget && (account == "" || item.Concerns(account)) && len(rows) < 20 {
			rows = append(rows, newsRow{item.At.UTC().Format(time.TimeOnly), view.Printable(item.Budget), item.What, item.Cause})
		}
	}
	return rows
}

func reasonsOf(waiting map[string]int) (all []reason) {
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		all = append(all, reason{view.Printable(name), waiting[name]})
	}
	return all
}

// left returns how long it is from now until an instant.
func left(until, now time.Time) string { return view.Short(max(0, until.Sub(now))) }

// cut makes the pager of a list, and returns which part of it the page has.
func (p *pager) cut(r *http.Request, items int) (from, to int) {
	query := r.URL.Query()
	number, _ := strconv.Atoi(query.Get("page"))
	p.Items, p.Count = items, max(1, (items+onePage-1)/onePage)
	p.Number = min(max(1, number), p.Count)
	address := func(number int) string {
		query.Set("page", strconv.Itoa(number))
		return "?" + query.Encode()
	}
	if p.Number > 1 {
		p.Before = address(p.Number - 1)
	}
	if p.Number < p.Count {
		p.After = address(p.Number + 1)
	}
	return (p.Number - 1) * onePage, min(items, p.Number*onePage)
}
