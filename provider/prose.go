package provider

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/jsonprefix"
	"github.com/ration-go/ration/limit"
)

// Some providers say in words, in a policy's name or in fields of the body what others say in headers.

// "You have made 1001 of 1000 allowed requests", "used 60 of your 60 calls".
var countWords = regexp.MustCompile(`\b(?:made|used|sent|consumed|performed) ([0-9][0-9,]{0,14}) of (?:the |your |an? )?(?:maximum of )?([0-9][0-9,]{0,14})\b`)

// "100 per 1 minute", "350 requests per hour", "5 calls/second", "20 żądań na godzinę".
var limitPer = regexp.MustCompile(`(?:^|[\s'"(:=])([0-9][0-9,]{0,14})\b['"]? ?(?:` + callWords + ` ?)?(?:per|/|every|each|an?|na|por|pro|par|za|за|в) ?([0-9]{1,5})? ?(` + periodWords + `)(?:[^\pL]|$)`)

// "1000 calls in 1 day", "'100' exceeded with in '20' secs": a limit if a word before it says so.
var limitIn = regexp.MustCompile(`(?:limit|max|exceed|allow|up to|more than|below|under|only|reached)[^.\n]{0,60}?\b['"]?([0-9][0-9,]{0,14})\b['"]? ?(?:` + callWords + ` |exceeded )?(?:in|within|with in|during|over) (?:any |a |an |the |last )*['"]?([0-9]{1,5})?['"]? ?(` + periodWords + `)(?:[^\pL]|$)`)

// "每分钟最多访问该接口500次".
var limitEach = regexp.MustCompile(`每(秒|分钟|分|小时|天|日)[^0-9]{0,20}([0-9]{1,15}) ?次`)

// "exceeded the allowed_rps(10)", "QPS: 5".
var limitRate = regexp.MustCompile(`\b(?:allowed[ _])?[rq]ps\W{1,3}([0-9]{1,9})\b`)

// "limit of 150", "your current limit is 8", "limit: 100", "maximum of 60 requests".
var limitNumber = regexp.MustCompile(`\b(?:limit|maximum|allowed)(?: is| of| being|:| to| set to| is set to)+ ['"]?([0-9][0-9,]{0,14})\b['"]?(?: ?` + callWords + `)?(?:\)|[.;:!]|,(?:\s|$)|$| (?:has|have|was|were|is|per|for|in|on|and|at|with|you|please)\b)`)

const callWords = `(?:(?:api|http|total|allowed|search|successful|free) )?(?:requests?|reqs?|calls?|queries|hits?|times|operations|transactions|messages|credits|points|emails|żądań|zapytań|запрос(?:а|ов)|solicitudes|peticiones|requisições|requêtes|anfragen)`

const periodWords = `seconds?|secs?|minutes?|mins?|hours?|days?|months?|segundos?|minutos?|horas?|d[ií]as?|godzin[eę]|minut[eę]|sekund[eę]|stunden?|heures?|минуту|час|день|сутки|секунду`

// periodsInWords are words that name the time of a limit by themselves.
var periodsInWords = []struct {
	length time.Duration
	words  *regexp.Regexp
}{
	{time.Second, regexp.MustCompile(`\bper[ -]second|\bqps\b|\bper sec\b|por segundo|每秒|초당|\bsecondly`)},
	{time.Minute, regexp.MustCompile(`\bper[ -]minute|\bminutely|\bcurrent minute|\bper min\b|por minuto|每分钟`)},
	{time.Hour, regexp.MustCompile(`\bper[ -]hour|\bhourly|\bcurrent hour|por hora|每小时`)},
	{24 * time.Hour, regexp.MustCompile(`\bper[ -]day|\bdaily|\bfor today|\bcurrent day|por d[ií]a|diario|diária|суточн|天配额|每日|每天|日配额|当日`)},
	{30 * 24 * time.Hour, regexp.MustCompile(`\bper[ -]month|\bmonthly|\bcurrent month|por m[eê]s|每月`)},
}

// "TEN_SECONDLY_ROLLING", "DAILY", "requests_per_minute", "burst-per-10-seconds".
var lengthInName = regexp.MustCompile(`(?:^|[_ -])(?:(one|two|five|ten|fifteen|thirty|sixty|[0-9]{1,4})[_ -])?(second|minute|min|hour|dai|day)(?:ly|s)?(?:$|[_ -])`)

var numberWords = map[string]float64{"one": 1, "two": 2, "five": 5, "ten": 10, "fifteen": 15, "thirty": 30, "sixty": 60}

var unitLengths = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "min": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "dai": 24 * time.Hour,
	"daily": 24 * time.Hour, "hourly": time.Hour, "minutely": time.Minute, "monthly": 30 * 24 * time.Hour, "month": 30 * 24 * time.Hour}

// policyFields are the fields of a body that name the policy by which it refuses.
const policyFields = "policyName|policy|error.policy|error.policyName|limitName|error.limitName"

// windowInWords returns the window that a refusal describes in words or in fields of its body, or whose length the name of its policy has. A
// limit that it names is spent, since it refuses.
func windowInWords(r *Response) (w Window, found bool) {
	text := r.prose()
	w.By = inWords
	if words := countWords.FindStringSubmatch(text); words != nil {
		w.Used, w.Limit = numberInWords(words[1]), numberInWords(words[2])
	}
	for _, name := range r.Fields(policyFields) {
		if words := lengthInName.FindStringSubmatch(strings.ToLower(name)); words != nil && !w.Length.Known {
			w.Name, w.Length, w.By = header.Name(name), lengthOf(words[1], words[2]), "the name of the policy in the body"
		}
	}
	if !w.Length.Known {
		w.limitInWords(text)
	}
	if !w.Limit.Known {
		left := mostFields
		w.inFields(r.json, 0, &left)
	}
	if !w.Limit.Known && !w.Length.Known || w.Used.Known && w.Limit.Known && w.Used.Value < w.Limit.Value {
		return w, false // what has something left did not refuse
	}
	if w.Limit.Known {
		w.Remaining = Some[int64](0)
	}
	return w, true
}

// limitInWords reads the limit and the time that a text tells.
func (w *Window) limitInWords(text string) {
	for _, pattern := range [...]*regexp.Regexp{limitPer, limitIn} {
		if words := pattern.FindStringSubmatch(text); words != nil {
			times, known := header.Number(words[2])
			if !known {
				times = 1
			}
			length := OptionalOf(header.Length(times * periodSeconds(words[3])))
			if w.Limit, w.Length = numberInWords(words[1]), length; w.Limit.Known && length.Known {
				return
			}
		}
	}
	if words := limitRate.FindStringSubmatch(text); words != nil {
		w.Limit, w.Length = numberInWords(words[1]), Some(time.Second)
		return
	}
	if words := limitEach.FindStringSubmatch(text); words != nil {
		w.Limit, w.Length = numberInWords(words[2]), OptionalOf(header.Length(unitSeconds()[words[1]]))
		return
	}
	if words := limitNumber.FindStringSubmatch(text); words != nil && !w.Limit.Known {
		w.Limit = numberInWords(words[1])
	}
	for _, period := range periodsInWords {
		if !period.words.MatchString(text) {
			continue
		}
		if w.Length.Known && w.Length.Value != period.length {
			w.Length = Optional[time.Duration]{} // it speaks of several
			return
		}
		w.Length = Some(period.length)
	}
}

// numberInWords reads a number that may have its thousands apart.
func numberInWords(s string) Optional[int64] {
	n, known := header.Number(strings.ReplaceAll(s, ",", ""))
	return OptionalOf(int64(n), known && n >= 1 && n <= header.MaxUnits)
}

// periodSeconds returns the seconds of a word for a period; 0: it is none.
func periodSeconds(word string) float64 {
	if seconds := unitSeconds()[word]; seconds > 0 {
		return seconds
	}
	if length := unitLengths[strings.TrimSuffix(word, "s")]; length > 0 {
		return length.Seconds()
	}
	for _, stem := range [...]struct {
		begins  string
		seconds float64
	}{{"sekund", 1}, {"minut", 60}, {"godzin", 3600}, {"dia", 86400}, {"día", 86400}, {"сутки", 86400}} {
		if strings.HasPrefix(word, stem.begins) {
			return stem.seconds
		}
	}
	return 0
}

// inFields reads the window that an object of the body has: {"limit": 5, "period": "minute"}. It looks into all of them, and takes the first
// that is one.
func (w *Window) inFields(v jsonprefix.Value, depth int, left *int) {
	var limits Optional[int64]
	var length Optional[time.Duration]
	names := 0
	for _, member := range v.Members {
		if *left--; *left < 0 {
			return
		}
		if member.Value.Kind != jsonprefix.Number && member.Value.Kind != jsonprefix.String {
			continue
		}
		words := kebab(member.Name)
		switch p, _ := partOf(words); p {
		case partLimit:
			if strings.Contains(words, "-total-") {
				continue // of what was done, as a rule
			}
			if n := numberInWords(member.Value.Text); n.Known && !limits.Known {
				if limits = n; words != "-limit-" && words != "-max-" {
					names++ // which no other field has
				}
			}
		case partRemaining:
			if _, isNumber := header.Number(member.Value.Text); isNumber {
				names++
			}
		case partLength, partLengthMilliseconds:
			unit := time.Second
			if p == partLengthMilliseconds {
				unit = time.Millisecond
			}
			if one := parseLength(member.Value.Text, unit); one.Known && !length.Known {
				length = one
				names++
			}
		}
	}
	if limits.Known && names > 0 {
		w.Limit, w.By = limits, "the fields of the body"
		if length.Known {
			w.Length = length
		}
		return
	}
	for _, member := range v.Members {
		if depth < deepestField && len(member.Value.Members) > 0 && !w.Limit.Known {
			w.inFields(member.Value, depth+1, left)
		}
	}
}

// kebab returns the words of a field's name in lower case, with "-" between and around.
func kebab(name string) string {
	b := []byte{'-'}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			if i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
				b = append(b, '-')
			}
			b = append(b, c-'A'+'a')
		case c == '_' || c == ' ' || c == '.':
			b = append(b, '-')
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '-'))
}

// parseLength reads the length of a window: a number of units, a duration in Go's form or in ISO 8601's, or a word such as "minute".
func parseLength(value string, unit time.Duration) Optional[time.Duration] {
	if n, known := header.Number(value); known {
		return OptionalOf(header.Length(n * unit.Seconds()))
	}
	if d, err := time.ParseDuration(value); err == nil {
		return OptionalOf(header.Length(d.Seconds()))
	}
	if len(value) > 40 {
		return Optional[time.Duration]{}
	}
	lower := strings.ToLower(value)
	if rest, is := strings.CutPrefix(lower, "p"); is && rest != "" && (isDigit(rest[0]) || rest[0] == 't') {
		days, clock, _ := strings.Cut(rest, "t")
		d, _ := header.Number(strings.TrimSuffix(days, "d"))
		if in, err := time.ParseDuration(clock); err == nil || days != "" && clock == "" {
			return OptionalOf(header.Length(d*86400 + in.Seconds()))
		}
	}
	if spans := spansIn(lower); len(spans) == 1 {
		return OptionalOf(header.Length(spans[0].seconds))
	}
	if words := strings.FieldsFunc(lower, func(c rune) bool { return c < 'a' || c > 'z' }); len(words) > 0 {
		if i := slices.IndexFunc(words, func(word string) bool { return periodSeconds(word) > 0 }); i >= 0 {
			return Some(min(header.Seconds(periodSeconds(words[i])), limit.MaxWindow))
		}
	}
	return Optional[time.Duration]{}
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
