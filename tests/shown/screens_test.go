package shown_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A screen is what people or programs see of a budget.
type screen struct {
	name          string
	before, after time.Time // when it was read
	text          string
	says          map[string]float64 // the figures, in units and seconds; one that is not shown is not there
	used          map[string]float64 // of each account, by its label
	failed        map[failure]float64
}

// A failure is what was not served of an account at an endpoint: "401", "shop07" and "items".
type failure struct{ class, account, path string }

var (
	ofRates    = regexp.MustCompile(`([\d.]+) calls/s, (\d+) refused/min, (\d+) % of the quota used`)
	ofAnswers  = regexp.MustCompile(`answered in the last minute: ((?:(?:, )?\d+ with (?:401|403|4xx|5xx|no answer))+)`)
	ofFailed   = regexp.MustCompile(`(\d+) with (\d+|other 4xx|5xx|no answer) of (\S+) at [A-Z]+ https?://[^/ ]+/(\w+)/`)
	ofWaits    = regexp.MustCompile(`callers waited ([\dhms.µ]+), 99 of 100 at most ([\dhms.µ]+)`)
	ofLongest  = regexp.MustCompile(`the longest waits ([\dhms.µ]+)`)
	ofDrain    = regexp.MustCompile(`all who wait for quota have their slots in ([\dhms.µ]+)`)
	ofTook     = regexp.MustCompile(`answers took ([\dhms.µ]+), 99 of 100 at most ([\dhms.µ]+)`)
	ofStates   = regexp.MustCompile(`(\d+) (free|spent|paused|quarantined)\b`)
	ofWaiting  = regexp.MustCompile(`(\d+) waiting`)
	ofReasons  = regexp.MustCompile(`(\d+) (?:waiting )?for ([a-z_]+)`)
	ofAccount  = regexp.MustCompile(`(?m)^  (\S+)\s+\d+/\d+s(?::\S+)?\s+(\d+)\s+\d+\s+(?:-|\d+) .*$`)
	ofMetric   = regexp.MustCompile(`(?m)^(ration_\w+)\{(.*)\} (\S+)$`)
	ofNews     = regexp.MustCompile(`(?s)<h2>Refusals and pauses seen</h2>.*?</section>`)
	ofTags     = regexp.MustCompile(`<[^>]*>`)
	ofPageRow  = regexp.MustCompile(`<tr><th scope="row"><a [^>]*>(\S+)</a></th><td><span class="state \w+">[^<]*</span></td><td><code>[^<]*</code></td><td>.*?</td><td class="n">(\d+)</td><td class="n">\d+</td><td class="n">(?:-|\d+)</td>`)
	ofTerminal = regexp.MustCompile(`\x1b(\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07|[=>])`)
)

// read fills in the figures that lines for people have, wherever these stand.
func (s *screen) read(line string) {
	seconds := func(name, text string) {
		if d, err := time.ParseDuration(strings.TrimRight(text, ".")); err == nil {
			s.says[name] = d.Seconds()
		}
	}
	number := func(name, text string) { s.says[name], _ = strconv.ParseFloat(text, 64) }
	if m := ofRates.FindStringSubmatch(line); m != nil {
		number("calls/s", m[1])
		number("refused/min", m[2])
		number("used %", m[3])
		for _, class := range []string{"401", "403", "4xx", "5xx", "no answer"} {
			s.says[class+"/min"] = 0
		}
	}
	if m := ofAnswers.FindStringSubmatch(line); m != nil {
		for _, one := range strings.Split(m[1], ", ") {
			if n, class, found := strings.Cut(one, " with "); found {
				number(class+"/min", n)
			}
		}
	}
	for _, m := range ofFailed.FindAllStringSubmatch(line, -1) {
		s.failed[failure{m[2], m[3], m[4]}], _ = strconv.ParseFloat(m[1], 64)
	}
	if m := ofWaits.FindStringSubmatch(line); m != nil {
		seconds("mean wait", m[1])
		seconds("wait, 99 of 100", m[2])
	}
	if m := ofLongest.FindStringSubmatch(line); m != nil {
		seconds("longest wait", m[1])
	}
	if m := ofDrain.FindStringSubmatch(line); m != nil {
		seconds("time to drain", m[1])
	}
	if m := ofTook.FindStringSubmatch(line); m != nil {
		seconds("answers took", m[1])
		seconds("answers took, 99 of 100", m[2])
	}
}

// states fills in how many accounts are in which state.
func (s *screen) states(text string) {
	for _, state := range []string{"free", "spent", "paused", "quarantined"} {
		s.says[state] = 0
	}
	for _, m := range ofStates.FindAllStringSubmatch(text, -1) {
		s.says[m[2]], _ = strconv.ParseFloat(m[1], 64)
	}
}

// row fills in what is used of an account.
func (s *screen) row(account, used string) { s.used[account], _ = strconv.ParseFloat(used, 64) }

// head reads the first line of a budget: "shop: 25 accounts, 6 workers: 25 spent; 96 waiting for quota".
func (s *screen) head(budget string) {
	m := regexp.MustCompile(`(?m)^\s*` + budget + `: (\d+) accounts, (\d+) workers?(?:, (\d+) of them silent)?: ([^;\n]*)(.*(?:\n    .*)?)$`).FindStringSubmatch(s.text)
	if m == nil {
		return
	}
	for i, name := range []string{"accounts", "workers", "silent workers"} {
		s.says[name], _ = strconv.ParseFloat(m[i+1], 64) // none silent: zero
	}
	s.states(m[4])
	s.says["waiting"] = 0
	if w := ofWaiting.FindStringSubmatch(m[5]); w != nil {
		s.says["waiting"], _ = strconv.ParseFloat(w[1], 64)
	}
	s.reasons(strings.Join(strings.Fields(m[5]), " "))
}

// reasons fills in how many callers wait, and for something else than quota: "30 for cooldown, 55 for quota", "96 waiting for quota".
func (s *screen) reasons(text string) {
	s.says["waiting, by reason"], s.says["waiting for else"] = 0, 0
	for _, m := range ofReasons.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseFloat(m[1], 64)
		if s.says["waiting, by reason"] += n; m[2] != "quota" {
			s.says["waiting for else"] += n
		}
	}
}

// screens returns all that there are of a budget.
func (f *fleet) screens(t *testing.T, budget string) []*screen {
	t.Helper()
	get := func(path string) func() (string, error) {
		return func() (string, error) {
			resp, err := http.Get(f.page + path)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return string(text), err
		}
	}
	run := func(name string, args ...string) func() (string, error) {
		return func() (string, error) {
			out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
			return string(out), err
		}
	}
	top := fmt.Sprintf("export TERM=screen; stty rows 100 cols 400; (sleep 0.7; printf q) | %s top -redis %s %s", f.tool, f.redis.Addr, budget)
	var all []*screen
	for _, one := range []struct {
		name string
		read func() (string, error)
		fill func(*screen)
	}{
		{"status", run(f.tool, "status", "-all", "-redis", f.redis.Addr, budget), func(s *screen) {
			s.head(budget)
			s.read(strings.Join(strings.Fields(s.text), " "))
			for _, m := range ofAccount.FindAllStringSubmatch(s.text, -1) {
				s.row(m[1], m[2])
			}
		}},
		{"page", get("/b/" + budget), func(s *screen) {
			for _, m := range ofPageRow.FindAllStringSubmatch(s.text, -1) {
				s.row(m[1], m[2])
			}
			s.says["workers"] = float64(strings.Count(s.text, " ago</td>"))
			s.says["silent workers"] = float64(strings.Count(s.text, "it has ended, or hangs</td>"))
			s.text = ofNews.ReplaceAllString(s.text, "") // which is what was, and not what is
			s.text = html.UnescapeString(ofTags.ReplaceAllString(s.text, " "))
			s.text = strings.Join(strings.Fields(s.text), " ")
			s.text = strings.NewReplacer(" .", ".", " ,", ",").Replace(s.text)
			s.read(s.text)
			if _, rest, found := strings.Cut(s.text, "Accounts: "); found {
				how, rest, _ := strings.Cut(rest, ".")
				s.states(how)
				why, _, _ := strings.Cut(rest, ".")
				s.reasons(why)
				s.says["waiting"] = s.says["waiting, by reason"]
			}
		}},
		{"metrics", get("/metrics"), func(s *screen) { s.metrics(budget) }},
		{"top", run("script", "-qec", top, "/dev/null"), func(s *screen) {
			s.text = strings.ReplaceAll(ofTerminal.ReplaceAllString(s.text, ""), "\r", "\n")
			s.head(budget)
			s.read(s.text)
		}},
	} {
		s := &screen{name: one.name, before: time.Now(), says: make(map[string]float64), used: make(map[string]float64), failed: make(map[failure]float64)}
		text, err := one.read()
		s.after = time.Now()
		require.NoError(t, err, "%s of %s: %s", one.name, budget, text)
		s.text = text
		one.fill(s)
		require.Contains(t, s.says, "calls/s", "%s of %s: %s", one.name, budget, s.text)
		all = append(all, s)
	}
	return all
}

// metrics reads Prometheus's text.
func (s *screen) metrics(budget string) {
	names := map[string]string{
		"ration_slots_per_second":              "calls/s",
		"ration_refused_last_minute":           "refused/min",
		"ration_workers":                       "workers",
		"ration_workers_silent":                "silent workers",
		"ration_workers_failing":               "failing workers",
		"ration_longest_wait_seconds":          "longest wait",
		"ration_in_flight":                     "in flight",
		"ration_wait_last_minute_mean_seconds": "mean wait",
	}
	s.says["waiting"] = 0
	for _, class := range []string{"401", "403", "4xx", "5xx", "no answer"} {
		s.says[class+"/min"] = 0
	}
	for _, m := range ofMetric.FindAllStringSubmatch(s.text, -1) {
		labels := make(map[string]string)
		for _, one := range strings.Split(m[2], ",") {
			name, value, _ := strings.Cut(one, "=")
			labels[name] = strings.Trim(value, `"`)
		}
		if labels["budget"] != budget {
			continue
		}
		value, _ := strconv.ParseFloat(m[3], 64)
		switch m[1] {
		case "ration_waiting":
			s.says["waiting"] += value
		case "ration_accounts":
			s.says[labels["state"]] = value
		case "ration_answers_last_minute":
			s.says[strings.TrimPrefix(labels["class"], "other ")+"/min"] = value
		case "ration_wait_last_minute_seconds":
			if labels["part"] == "0.99" {
				s.says["wait, 99 of 100"] = value
			}
		case "ration_answer_last_minute_seconds":
			s.says[map[string]string{"0.5": "answers took", "0.99": "answers took, 99 of 100"}[labels["part"]]] = value
		case "ration_used_units":
			s.says["used"] += value
		default:
			if name := names[m[1]]; name != "" {
				s.says[name] = value
			}
		}
	}
}
