package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/testkit/simulated"
)

// A plan is what is to be crawled, and with what: the flags and the files that
// they name.
type plan struct {
	options
	starts   []string // the first pages
	secrets  []string
	redactor *redactor
	origins  map[string]bool     // that get a token
	margin   time.Duration       // zero: the budget's own
	judge    *simulated.Provider // nil: no demo
	begin    time.Time           // not to begin before
	lasting  time.Duration       // how long the crawl goes on; zero: until all is fetched
	intro    string
	commands int64 // that were sent to Redis before the crawl
	close    func()
}

// planCrawl reads the files of a crawl.
func (a *app) planCrawl(o options) (plan, error) {
	p := plan{options: o, close: func() {}}
	data, err := a.readInput("tokens", o.tokens)
	if err != nil {
		return p, err
	}
	if p.secrets, err = readTokens(o.tokens, data); err != nil {
		return p, err
	}
	p.redactor = newRedactor(o.auth, p.secrets)
	if data, err = a.readInput("urls", o.urls); err != nil {
		return p, err
	}
	if p.starts, err = readURLs(o.urls, data, p.redactor); err != nil {
		return p, err
	}
	p.origins = origins(p.starts)
	return p, nil
}

// setup returns the setup of a group of that many workers.
func (p plan) setup(workers int) *setup {
	return &setup{
		Tokens:   p.secrets,
		Limits:   p.limits,
		Margin:   p.margin,
		Budget:   p.budget,
		Redis:    p.redis,
		Auth:     p.auth,
		Provider: p.provider,
		Follow:   p.follow,
		Hosts:    p.hosts(),
		Workers:  workers,
		Keep:     p.out != "",
		Timeout:  p.timeout,
	}
}

// hosts are those of the origins, as ration.Transport compares them.
func (p plan) hosts() []string {
	var hosts []string
	for o := range p.origins {
		_, host, _ := strings.Cut(o, "://")
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// longestCount is how long a call can count: for a window, or for two if the algorithm
// counts in windows with edges or frees a slot late.
func (p plan) longestCount() (longest time.Duration) {
	for _, l := range p.limits {
		counts := l.Window
		if !isExact(l) {
			counts *= 2
		}
		longest = max(longest, counts)
	}
	return longest
}

// limitsText is the limits as they were given.
func (p plan) limitsText() []string {
	var all []string
	for _, l := range p.limits {
		all = append(all, l.String())
	}
	return all
}

// opening says what is going to happen.
func (p plan) opening(pages *outFile) string {
	var b strings.Builder
	if p.intro != "" {
		fmt.Fprintln(&b, p.intro)
	} else {
		fmt.Fprintf(&b, "%s of %s; %s, each %s\n", count(len(p.starts), "URL"),
			count(len(p.hosts()), "host"), count(len(p.secrets), "token"), strings.Join(p.limitsText(), " and "))
	}
	log := "memory"
	if p.redis != "" {
		log = fmt.Sprintf("Redis at %s, budget %s", redisAddress(p.redis), p.budget)
	}
	fmt.Fprintf(&b, "%s in %s; the log is in %s\n", count(p.workers, "worker"), count(p.processes, "process"), log)
	if n := len(pages.pages); n > 0 {
		fmt.Fprintf(&b, "%s has %s already", p.out, count(n, "page"))
		if pages.tornBytes > 0 {
			fmt.Fprintf(&b, "; %s of it were torn, and what they held is fetched again", count(int(pages.tornBytes), "byte"))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// count is "1 page" or "7 pages".
func count(n int, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "ss"):
		what += "es"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
