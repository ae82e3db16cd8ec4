package provider

import (
	"regexp"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
)

// Some providers say in words, or in a policy's name, what others say in headers.

// "You have made 1001 of 1000 allowed requests", "used 60 of your 60 calls".
var countWords = regexp.MustCompile(`\b(?:made|used|sent|consumed|performed) ([0-9][0-9,]{0,14}) of (?:the |your |an? )?(?:maximum of )?([0-9][0-9,]{0,14})\b`)

// "Your current limit is 100 per 1 MINUTE", "limited to 30 requests per minute", "rate limit of 5 calls/second".
var limitPerWords = regexp.MustCompile(`\blimit(?:ed)? (?:is |to |of |is set to )?([0-9][0-9,]{0,14}) ?(?:requests?|calls?|queries|hits)? ?(?:per|/|every|in|each) ?([0-9]{1,4})? ?(second|minute|hour|day)s?\b`)

// "TEN_SECONDLY_ROLLING", "DAILY", "requests_per_minute", "burst-per-10-seconds".
var lengthInName = regexp.MustCompile(`(?:^|[_ -])(?:(one|two|five|ten|fifteen|thirty|sixty|[0-9]{1,4})[_ -])?(second|minute|min|hour|dai|day)(?:ly|s)?(?:$|[_ -])`)

var numberWords = map[string]float64{"one": 1, "two": 2, "five": 5, "ten": 10, "fifteen": 15, "thirty": 30, "sixty": 60}

var unitLengths = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "min": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "dai": 24 * time.Hour}

// policyFields are the fields of a body that name the policy by which it refuses.
const policyFields = "policyName|policy|error.policy|error.policyName|limitName|error.limitName"

// windowInWords returns the window that a refusal describes in words, or whose length the name of its
// policy has. A limit that it names is spent, since it refuses.
func windowInWords(r *Response) (w Window, found bool) {
	if len(r.Body) == 0 || r.isHTML() {
		return w, false
	}
	text := r.Text()
	number := func(s string) Optional[int64] {
		n, known := header.Number(strings.ReplaceAll(s, ",", ""))
		return OptionalOf(int64(n), known && n >= 1)
	}
	if words := countWords.FindStringSubmatch(text); words != nil {
		w.Used, w.Limit = number(words[1]), number(words[2])
	}
	if words := limitPerWords.FindStringSubmatch(text); words != nil {
		w.Limit, w.Length = number(words[1]), lengthOf(words[2], words[3])
	}
	w.By = inWords
	for _, name := range r.Fields(policyFields) {
		if words := lengthInName.FindStringSubmatch(strings.ToLower(name)); words != nil && !w.Length.Known {
			w.Name, w.Length, w.By = header.Name(name), lengthOf(words[1], words[2]), "the name of the policy in the body"
		}
	}
	if !w.Limit.Known && !w.Length.Known || w.Used.Known && w.Limit.Known && w.Used.Value < w.Limit.Value {
		return w, false // what has something left did not refuse
	}
	if w.Limit.Known {
		w.Remaining = Some[int64](0)
	}
	return w, true
}

// lengthOf returns so many units of time; none is one.
func lengthOf(number, unit string) Optional[time.Duration] {
	n, known := numberWords[number]
	if !known {
		if n, known = header.Number(number); !known {
			n = 1
		}
	}
	return OptionalOf(header.Seconds(n*unitLengths[unit].Seconds()), n >= 1)
}
