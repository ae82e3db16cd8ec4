package main

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider/presets"
)

const help = `crawler-demo spends the quota of a few access tokens to the full and is not
refused.

  crawler-demo
      the demo: a simulated provider, a log in memory, about 8 s, and a verdict
  crawler-demo -limit 400/5s:gcra,burst=20
      the demo of another quota, and another way of counting it
  crawler-demo -redis redis://HOST:6379/0 -processes 4
      the same as a fleet of processes that share one Redis
  crawler-demo -urls FILE -tokens FILE -limit 5000/1h -out FILE.jsonl
      crawl your own list of URLs
  crawler-demo -urls FILE -tokens FILE -provider github -out FILE.jsonl
      likewise, with the limits that GitHub has published

What to crawl:
  -urls FILE         one URL a line, - for standard input. Blank lines and lines
                     that begin with # are skipped; a URL given twice is fetched
                     once.
  -follow PATH       fetch also the page whose URL is in the JSON body at PATH,
                     such as paging.next, or in the header Link: -follow Link.
                     Pages are followed on the hosts of the list only.
  -max N             stop after N URLs; the next run goes on from there

With what:
  -provider NAME     take from what is known of that API what it allows, how a
                     token is attached, and what its answers mean. -limit and
                     -auth go before it. "ration provider" has the names.
  -tokens FILE       one secret a line, with or without "Bearer " in front, as
                     NAME=SECRET (a NAME with TOKEN or API_KEY in it), in quotes,
                     with commas between, or as JSON. What begins with # is a
                     comment. They are shown and kept nowhere:
                     what you see of a token is its ID, a digest.
  -limit MAX/WINDOW[:ALGORITHM[,OPTION...]]
                     what the provider allows each token, such as 5000/1h or
                     10/1s:gcra,burst=20. Give it again for a second limit that
                     holds too. In the demo the provider counts by it.
                     docs/explanation/algorithms.md has all forms.
  -auth bearer       attach the token as "Authorization: Bearer SECRET" (the
                     default),
  -auth query:NAME   as the query parameter NAME,
  -auth header:NAME  or as the header NAME

How:
  -redis URL         keep the log in Redis, redis://[USER:PASSWORD@]HOST:PORT/DB,
                     for all crawlers that use it. Without it the log is in
                     memory: a crawl that is resumed counts the calls that -out
                     tells of, not those that were in flight when it was killed.
  -budget NAME       the log's name in that Redis (crawler-demo). All that spend
                     a token under one name share its quota, and must give the
                     same limits.
  -processes P       processes (1); more than one need -redis
  -workers W         workers in all processes together (16; in the demo 64)
  -timeout TIME      the longest that a call takes from its slot to the last byte
                     of the answer, such as 30s (2m)

What comes of it:
  -out FILE.jsonl    a JSON object for each response: url, status, token (its
                     ID), slot, sent, received, final_url if a redirect led to
                     another, next, content_type, and the body: as
                     body_json if it is JSON, body if it is other text, else
                     body_base64. Run the same command again to fetch what is
                     missing, whatever ended the last run.
  -plot FILE.svg     plot the calls in the window against the limit (beside -out
                     as FILE.jsonl.svg)
  -json              print the summary as one JSON object on standard output,
                     and all else on standard error
  -h                 this text

An answer is kept if it would be the same tomorrow: 2xx, and 4xx such as 404 and
410. All else is a failure, which the next run tries again: network errors, 5xx,
refusals, and 400, 401 and 403, which may be about the token. A request is tried
up to four times, each with a slot of its own. A Redis that does not answer is
waited for, five minutes, and nothing is sent meanwhile.

Ctrl-C stops cleanly: calls that were sent are finished and kept, unused
bookings are cancelled. A second Ctrl-C stops at once.

Exit status: 0 all URLs (or -max of them) have an answer; 1 not so; 2 the input is
wrong and nothing was written; 3 the demo's machine was too busy to judge; 130
interrupted.
`

// Bounds that no crawl on one machine has a use for exceeding.
const (
	mostProcesses = 256
	mostWorkers   = 10_000
)

const (
	demoWorkers    = 64
	crawlWorkers   = 16
	defaultBudget  = "crawler-demo"
	defaultPlotExt = ".svg"
)

// options are the flags.
type options struct {
	urls, tokens       string
	limits             []ration.Limit
	provider           string
	redis, budget      string
	processes, workers int
	auth               auth
	follow             follower
	max                int
	out, plot          string
	json               bool
	timeout            time.Duration
}

// isDemo reports whether it is the demo that is asked for.
func (o options) isDemo() bool { return o.urls == "" }

// parseOptions reads the flags and looks at all that can be seen to be wrong
// without touching a file.
func parseOptions(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("crawler-demo", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.urls, "urls", "", "")
	fs.StringVar(&o.tokens, "tokens", "", "")
	fs.StringVar(&o.provider, "provider", "", "")
	fs.StringVar(&o.redis, "redis", "", "")
	fs.StringVar(&o.budget, "budget", defaultBudget, "")
	fs.IntVar(&o.processes, "processes", 1, "")
	fs.IntVar(&o.workers, "workers", 0, "")
	fs.IntVar(&o.max, "max", 0, "")
	fs.StringVar(&o.out, "out", "", "")
	fs.StringVar(&o.plot, "plot", "", "")
	fs.BoolVar(&o.json, "json", false, "")
	fs.DurationVar(&o.timeout, "timeout", callTimeout, "")
	fs.Func("limit", "", func(s string) error {
		limit, err := ration.ParseLimit(s)
		o.limits = append(o.limits, limit)
		if err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), "ration: limit "))
		}
		return nil
	})
	fs.Func("auth", "", func(s string) (err error) { o.auth, err = parseAuth(s); return err })
	fs.Func("follow", "", func(s string) (err error) { o.follow, err = parseFollower(s); return err })
	if err := fs.Parse(args); err != nil {
		if err == flag.ErrHelp {
			return o, err
		}
		return o, badf("%s (-h lists the flags)", flagError(err))
	}
	given := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return o, o.check(fs.Args(), given)
}

// flagError is an error of package flag as this command puts it: the flag first,
// then what to write. The value is not repeated: it can be a secret in a wrong
// place.
func flagError(err error) string {
	text := err.Error()
	_, rest, found := strings.Cut(text, "for flag -")
	if !found {
		_, rest, found = strings.Cut(text, "for -")
	}
	if !found || !strings.HasPrefix(text, "invalid ") {
		return text
	}
	switch name, why, _ := strings.Cut(rest, ": "); {
	case strings.HasPrefix(text, "invalid boolean"):
		return "-" + name + ": leave the value out"
	case name == "timeout":
		return "-timeout: write a duration such as 30s"
	case why == "parse error", why == "value out of range":
		return "-" + name + ": write a whole number"
	default:
		return "-" + name + " " + why
	}
}

func (o *options) check(rest []string, given map[string]bool) error {
	for name, value := range map[string]string{"urls": o.urls, "tokens": o.tokens, "provider": o.provider,
		"redis": o.redis, "budget": o.budget, "out": o.out, "plot": o.plot} {
		if given[name] && value == "" {
			return badf("-%s is empty: give it a value or leave it out", name)
		}
	}
	if len(rest) > 0 {
		return badf("%q is not a flag: URLs go into a file for -urls (-h lists the flags)", rest[0])
	}
	if err := o.checkKind(given); err != nil {
		return err
	}
	if o.workers == 0 && !given["workers"] {
		o.workers = crawlWorkers
		if o.isDemo() {
			o.workers = demoWorkers
		}
		o.workers = max(o.workers, o.processes)
	}
	switch {
	case o.processes < 1 || o.processes > mostProcesses:
		return badf("-processes is %d: it must be from 1 to %d", o.processes, mostProcesses)
	case o.workers < o.processes || o.workers > mostWorkers:
		return badf("-workers is %d: it must be from %d, one for each process, to %d", o.workers, o.processes, mostWorkers)
	case given["max"] && o.max < 1:
		return badf("-max is %d: it must be at least 1", o.max)
	case o.processes > 1 && o.redis == "":
		return badf("-processes %d needs -redis redis://HOST:PORT/DB: the log in memory is one process's own", o.processes)
	case len(o.budget) > 200 || strings.ContainsFunc(o.budget, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '{' || c == '}' }):
		return badf("-budget: write a name of at most 200 bytes without spaces and braces")
	case o.out != "" && o.out == o.plot:
		return badf("-out and another flag name the same file: %s", o.out)
	case o.timeout <= 0:
		return badf("-timeout is %v: it must be longer than nothing, such as 30s", o.timeout)
	}
	if o.redis != "" {
		if _, err := redisOptions(o.redis); err != nil {
			return badInput{err}
		}
	}
	if o.plot == "" && o.out != "" {
		o.plot = o.out + defaultPlotExt
	}
	return nil
}

// checkKind looks at what the demo or a crawl needs, and what only the other takes.
func (o *options) checkKind(given map[string]bool) error {
	if o.isDemo() {
		for _, name := range []string{"tokens", "provider", "auth", "follow", "max", "budget", "timeout"} {
			if given[name] {
				return badf("-%s needs -urls FILE: the demo brings its own provider and tokens", name)
			}
		}
		if len(o.limits) > 1 {
			return badf("-limit is given %d times: the demo's provider has one limit; more need -urls FILE", len(o.limits))
		}
	} else {
		switch {
		case o.tokens == "":
			return badf("-urls needs -tokens FILE, with one secret a line")
		case o.urls == "-" && o.tokens == "-":
			return badf("-tokens cannot come from standard input, which is what -urls - reads")
		case len(o.limits) == 0 && o.provider == "":
			return badf("-urls needs -limit, what the provider allows each token, such as -limit 5000/1h, or -provider NAME")
		}
	}
	if o.provider == "" {
		if at := slices.IndexFunc(o.limits, func(l ration.Limit) bool { return l.Scope != "" }); at >= 0 {
			return badf("-limit %s: its scope would leave it without effect, for no call names one: leave it out", o.limits[at])
		}
		return nil
	}
	preset, err := presets.Named(o.provider)
	if err != nil {
		return badf("-provider: %w", err)
	}
	if len(o.limits) == 0 {
		if o.limits = preset.Limits; len(o.limits) == 0 {
			return badf("-provider %s names no limit that all callers have (%s): give yours, such as -limit 5000/1h", o.provider, preset.Note)
		}
	}
	if !given["auth"] {
		o.auth = auth{"provider", o.provider}
	}
	return nil
}
