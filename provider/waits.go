package provider

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/jsonprefix"
	"github.com/ration-go/ration/limit"
)

// A wait is told in fields of the body, in headers that are none of the usual ones, and in words.

// waitNames are the names of the fields and the headers that have a wait, in lower case and with nothing but letters: as a number of
// seconds, or of milliseconds if the name ends so, as a duration, or as an instant. Those of the first list ask for a wait; those of the
// second say when a window resets, and count if none of the first is there.
var waitNames = [...]map[string]bool{
	namesOf("retryafter retryafterseconds retryaftersecs retryaftersec retryafterinseconds retryafters retryafterms retryaftermilliseconds " +
		"retryaftermillis retryaftertime retryafterdate retryafterat retryin retryinseconds retryinms retrydelay retrydelayseconds retrydelayms " +
		"retryat retrytime retrytimeout retrywait retryinterval nextretry nextretryat nextretryin nextretrytime " +
		"wait waitfor waittime waitms waitsecs waitseconds waituntil waitperiod waitmilliseconds secondstowait timetowait waitinseconds " +
		"backoff backoffseconds backoffms backofftime cooldown cooldownseconds cooldownremaining cooldownuntil cooldownms " +
		"tryagain tryagainin tryagainat tryagainafter tryafter msbeforenext " +
		"availablein availableat availableafter nextavailable nextavailableat nextavailablein nextavailabletime nextallowed nextallowedat nextallowedtime " +
		"nextallowedrequest nextallowedcall nextallowedafter nextrequest nextrequestat nextrequesttime nextvalidrequestdate nextcall nextcallat " +
		"nextaccesstime nextreplenishmenttime ratelimitnext retryinsec blockeduntil blockedfor blockexpires blockexpiresat blocktime blockduration banneduntil bannedtill banexpires banexpiresat banduration " +
		"unblockat unblockedat unbannedat lockeduntil lockedfor lockouttime lockoutseconds suspendeduntil throttledfor throttleduntil throttleseconds " +
		"throttlewaitseconds penaltyseconds estimatedtimetoregainaccess delayseconds sleepseconds"),
	namesOf("resetin resetsin resetinseconds resetsinseconds resetinms resetinsec resetinsecs resetafter resetafterseconds resetsafter resetafterms " +
		"secondsuntilreset secondstoreset timeuntilreset timetoreset msuntilreset resettimeinseconds resetat resetsat resettime resetdate resettimestamp resetepoch " +
		"resettimems reset resets nextreset nextresetat nextresettime ratelimitreset ratelimitresetat ratelimitresettime ratelimitresetsat " +
		"limitreset limitresetat limitresettime limitresetsat quotareset quotaresetat quotaresetsat quotaresettime quotaresetdate quotaresetsin quotaresetin " +
		"renewat renewsat renewaldate renewdate timeleft timeremaining remainingtime secondsleft secondsremaining remainingseconds " +
		"ratelimitexpires limitexpiresat expiresinseconds windowreset periodend periodendsat windowend windowresetat windowresetsat replenishin refillin refillat"),
}

func namesOf(names string) map[string]bool {
	all := make(map[string]bool)
	for name := range strings.FieldsSeq(names) {
		all[name] = true
	}
	return all
}

// onlyLetters returns a name in lower case, with nothing but its letters.
func onlyLetters(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		case c >= 'a' && c <= 'z':
			return c
		}
		return -1
	}, name)
}

// A fieldWait is a wait that a field of a body has.
type fieldWait struct {
	wait time.Duration
	path string
}

// waitFields returns the longest wait of the fields of each list.
func (r *Response) waitFields() (found [len(waitNames)]fieldWait) {
	r.parse()
	left := mostFields
	r.searchWaits(r.json, "", 0, &left, &found)
	return found
}

const (
	mostFields   = 2000 // that are searched for a wait
	deepestField = 6
)

func (r *Response) searchWaits(in jsonprefix.Value, path string, depth int, left *int, found *[len(waitNames)]fieldWait) {
	for _, member := range in.Members {
		if *left--; *left < 0 || depth > deepestField {
			return
		}
		at := path
		switch {
		case in.Kind == jsonprefix.Array:
			at += "[]"
		case path == "":
			at = member.Name
		default:
			at += "." + member.Name
		}
		if len(member.Value.Members) > 0 {
			r.searchWaits(member.Value, at, depth+1, left, found)
			continue
		}
		if member.Value.Kind != jsonprefix.Number && member.Value.Kind != jsonprefix.String {
			continue
		}
		name := onlyLetters(member.Name)
		for i, names := range waitNames {
			if !names[name] {
				continue
			}
			if wait, known := readWaitField(name, member.Value.Text, r.ServerTime()); known && wait > found[i].wait {
				found[i] = fieldWait{wait, header.Name(at)}
			}
		}
	}
}

// readWaitField reads a wait in the unit that its field's name has.
func readWaitField(path, value string, now time.Time) (wait time.Duration, known bool) {
	switch lower := strings.ToLower(path); {
	case strings.HasSuffix(lower, "minutes"), strings.HasSuffix(lower, "hours"):
		n, isNumber := header.Number(value)
		if isNumber && n >= 0 {
			return header.Seconds(n * periodSeconds(lower[strings.LastIndexAny(lower, "mh"):])), true
		}
		wait, known = header.Reset(value, now)
	case strings.HasSuffix(lower, "ms"), strings.HasSuffix(lower, "milliseconds"), strings.HasSuffix(lower, "millis"), lower == "msbeforenext":
		wait, known = header.ResetMilliseconds(value, now)
	default:
		wait, known = header.Reset(value, now)
	}
	if !known && len(value) <= header.MaxText {
		for _, one := range spansIn(strings.ToLower(value)) {
			return header.Seconds(one.seconds), true // "30 seconds"
		}
	}
	return wait, known
}

// waitInHeaders returns the wait that a header of a refusal asks for under a name that is none of the usual ones, such as
// X-Rate-Limit-Retry-After-Seconds.
func waitInHeaders(r *Response) (wait time.Duration, by string) {
	for i := range waitNames {
		for name := range r.Header {
			names := waitNames[i]
			if _, speaks := parseHeaderName(name); i == 1 && speaks || strings.EqualFold(name, "Retry-After") || len(name) > longestName {
				continue // it is the window's, which may have something left; or it was read before, and says nothing
			}
			letters := onlyLetters(name)
			if at := strings.Index(letters, "retryafter"); at >= 0 && i == 0 {
				letters = letters[at:]
				if strings.HasSuffix(letters, "count") || strings.HasSuffix(letters, "attempts") || strings.HasSuffix(letters, "limit") {
					continue
				}
			} else {
				rest, found := name, false
				for more := true; more && !found; { // whatever words stand before
					if letters = onlyLetters(rest); names[letters] {
						found = true
					}
					_, rest, more = strings.Cut(rest, "-")
				}
				if !found {
					continue
				}
			}
			if isBeta(strings.ToLower(name), "") {
				continue
			}
			value, _ := r.single(name)
			if one, known := readWaitField(letters, value, r.ServerTime()); known && (one > wait || one == wait && name < by) {
				wait, by = one, name
			}
		}
		if by != "" {
			return wait, by
		}
	}
	return 0, ""
}

// Many refusals say in words how long to wait: "Please try again in 1m20s", "Retry after 2026-03-02T12:15:00Z", "请在 30 秒后重试". A span of time,
// or an instant, is a wait if words beside it in the sentence ask for one, and if it is not the time of a limit, as in "100 requests per
// 60 seconds".

// timeUnits are the words for units of time, in the languages in which error texts of APIs are written.
var timeUnits = []struct {
	seconds float64
	words   string
}{
	{0.001, "ms msec msecs millis millisecond milliseconds milisegundos millisecondes millisekunden миллисекунд 毫秒 ミリ秒 밀리초"},
	{1, "s sec secs second seconds seg segundo segundos seconde secondes sek sekunde sekunden secondo secondi seconden sekund sekundy sekundach detik saniye " +
		"сек секунд секунду секунды 秒钟 秒鐘 秒間 秒 초"},
	{60, "m min mins minute minutes minuto minutos minutach minuten minuti minuut minut minuty menit dakika мин минут минуту минуты 分钟 分鐘 分間 分 분"},
	{3600, "h hr hrs hour hours hora horas heure heures std stunde stunden ora ore uur uren godzin godziny godzinach godzinę jam saat час часа часов 小时 小時 時間 시간"},
	{86400, "d day days día días dia dias jour jours tag tage tagen giorno giorni dag dagen dni dniach hari gün день дня дней 天 日間 日 일"},
}

// waitTriggers are parts of words that ask for a wait.
var waitTriggers = strings.Split("retry|try again|try after|try in|wait|available|reset|expire|refresh|renew|replenish|restore|unblock|block|banned|ban |unlock|lock|lift|suspend|cool|"+
	"come back|back in|after |next request|next call|until|resume|break|pause|slow down|hold off|sleep|delay|remaining|left|timeout|"+
	"intent|espera|espere|aguard|tente|disponib|reessay|réessay|attend|patient|erneut|warte|wieder|riprova|attendere|opnieuw|wacht|spróbuj|odczek|coba lagi|tunggu|"+
	"tekrar|bekle|попробуй|повтор|через|подожд|ждать|后|後|重试|重試|等待|再试|再試|请求|稍|待|お試し|再度|후|다시", "|")

// ratesBefore are what stands before the time of a limit.
var ratesBefore = regexp.MustCompile(`(?:(?:per|/|every|each|last|past|previous|within|any|over|during|window of|interval of|pro|por|par|cada|chaque|je|jede|alle|每|за|в)( an?| the| one| rolling)?|` +
	`(?:requests?|calls?|queries|messages|times|hits|attempts|e-?mails|downloads|operations|searches|transactions|[0-9]) in( the| an?| any)?( last| past)?)\s*$`)

// ratesBehind are what stands behind the time of a limit, or one that has passed.
var ratesBehind = regexp.MustCompile(`^[ -]*(?:window|interval|period|ago|limit|quota|rolling|sliding|time ?frame)`)

// otherTimes are of something else than of a limit.
var otherTimes = regexp.MustCompile(`\b(?:trial|session|subscription|password|cookie|certificate|access token|refresh token)\b`)

// articles are the words for one.
const articles = "an?|one|the next|next|una?|une|uma?|eine[nrm]?|siguiente|próxim[oa]"

// spans finds "5 minutes", "1.5h", "an hour" and "30秒", in a text in lower case.
var spans = sync.OnceValue(func() *regexp.Regexp {
	var words []string
	for _, unit := range timeUnits {
		words = append(words, strings.Fields(unit.words)...)
	}
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
	return regexp.MustCompile(`([0-9]{1,9}(?:[.,][0-9]{1,12})?|\b(?:` + articles + `))["'” -]{0,2}(` + strings.Join(words, "|") + `)`)
})

// unitSeconds has the seconds of each word for a unit.
var unitSeconds = sync.OnceValue(func() map[string]float64 {
	all := make(map[string]float64)
	for _, unit := range timeUnits {
		for word := range strings.FieldsSeq(unit.words) {
			all[word] = unit.seconds
		}
	}
	return all
})

// joints stand between the parts of "1 hour and 5 minutes".
var joints = regexp.MustCompile(`^(?:\s|,|and|y|e|et|und|en|i|и)*$`)

// instants finds dates with a time of day, and Unix time, in a text in lower case.
var instants = regexp.MustCompile(`[0-9]{4}[-/](?:[0-9]{2}|[a-z]{3})[-/][0-9]{2}[t ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?: ?(?:z|utc|gmt|[+-][0-9]{2}:?[0-9]{2}))?|` +
	`(?:mon|tue|wed|thu|fri|sat|sun), [0-9]{1,2} [a-z]{3} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} (?:gmt|utc|[+-][0-9]{4})|\b1[5-9][0-9]{8}(?:[0-9]{3})?\b`)

// plainWaits finds a number without a unit, which is in seconds.
var plainWaits = regexp.MustCompile(`(?:retry|try again|wait)[ _-]?(?:after|in|for)?["']?[ :=]{1,2}["']?([0-9]{1,10}(?:\.[0-9]{1,9})?)["'.,;!)\]}]*\s*(?:$|\n)`)

// clocks finds "07:01:20" and "22.14:18:12", which is of days too.
var clocks = regexp.MustCompile(`\bin (?:([0-9]{1,3})\.)?([0-9]{1,2}):([0-9]{2}):([0-9]{2})\b`)

// midnights finds the midnight of a zone.
var midnights = regexp.MustCompile(`(?:midnight|00:00)(?::00)?[ (,]{1,2}(utc|gmt|pacific|pst|pdt|pt|eastern|est|edt|et)\b`)

// zones are the zones of midnights.
var zones = map[string]string{"utc": "UTC", "gmt": "UTC", "pacific": "America/Los_Angeles", "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles",
	"pt": "America/Los_Angeles", "eastern": "America/New_York", "est": "America/New_York", "edt": "America/New_York", "et": "America/New_York"}

// waitInWords returns the wait that the words of a body ask for.
func waitInWords(r *Response) (wait Optional[time.Duration]) {
	text := r.prose()
	if text == "" {
		return wait
	}
	for _, at := range instants.FindAllStringIndex(text, 8) {
		if !asksToWait(text, at[0], at[1]) {
			continue
		}
		if left, known := header.Reset(strings.ToUpper(text[at[0]:at[1]]), r.ServerTime()); known {
			return Some(left)
		}
	}
	if at := clocks.FindStringSubmatchIndex(text); at != nil && asksToWait(text, at[0], at[1]) {
		seconds := 0.0
		for i, unit := range [...]float64{86400, 3600, 60, 1} {
			if at[2+2*i] >= 0 {
				n, _ := header.Number(text[at[2+2*i]:at[3+2*i]])
				seconds += n * unit
			}
		}
		return OptionalOf(header.Length(seconds))
	}
	for _, one := range spansIn(text) {
		if asksToWait(text, one.begins, one.ends) {
			return Some(min(header.Seconds(one.seconds), limit.MaxWindow))
		}
	}
	if found := plainWaits.FindStringSubmatch(text); found != nil {
		if left, known := header.Reset(found[1], r.ServerTime()); known {
			return Some(left)
		}
	}
	if found := midnights.FindStringSubmatch(text); found != nil {
		return OptionalOf(header.Midnight(zones[found[1]], r.ServerTime()))
	}
	return wait
}

// A span is a time in a text.
type span struct {
	begins, ends int
	seconds      float64
}

// spansIn returns the spans of a text in lower case, with "1 hour and 5 minutes" as one.
func spansIn(text string) (all []span) {
	smallest := 0.0 // unit of the last span
	found := spans().FindAllStringSubmatchIndex(text, 64)
	before := 0 // where the last span ended
	for i, at := range found {
		number, unit := text[at[2]:at[3]], text[at[4]:at[5]]
		if isLetter(text[at[5]:]) && isLatin(unit) {
			continue // the beginning of another word
		}
		if at[0] > 0 && isWordByte(text[at[0]-1]) && at[0] != before || isLatin(unit) && at[5] < len(text) && isDigit(text[at[5]]) && (i+1 == len(found) || found[i+1][0] != at[5]) {
			continue // a part of one, such as 7d41a9
		}
		n, known := header.Number(strings.Replace(number, ",", ".", 1))
		if !known {
			if n = 1; len(unit) < 3 {
				continue
			}
		}
		one := span{at[0], at[1], n * unitSeconds()[unit]}
		if last := len(all) - 1; last >= 0 && unitSeconds()[unit] < smallest && joints.MatchString(text[all[last].ends:one.begins]) {
			all[last].ends, all[last].seconds = one.ends, all[last].seconds+one.seconds
		} else if one.seconds > 0 {
			all = append(all, one)
		}
		smallest, before = unitSeconds()[unit], at[1]
	}
	return all
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWordByte reports whether a byte is of a word in ASCII, in lower case.
func isWordByte(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' || c == '_' }

// isLetter reports whether a text begins with a letter of an alphabet.
func isLetter(text string) bool {
	c, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLetter(c) && c < '⺀'
}

// isLatin reports whether a word is written in an alphabet, with spaces between words.
func isLatin(word string) bool {
	c, _ := utf8.DecodeRuneInString(word)
	return c < '⺀'
}

// asksToWait reports whether the words around a time ask to wait for it.
func asksToWait(text string, begins, ends int) bool {
	const near = 90 // bytes
	before, behind := text[max(0, begins-near):begins], text[ends:min(len(text), ends+near/2)]
	if i := max(strings.LastIndex(before, ". "), strings.LastIndexByte(before, '\n')); i >= 0 {
		before = before[i+1:]
	}
	if i := strings.IndexAny(behind, ".\n"); i >= 0 {
		behind = behind[:i]
	}
	if ratesBefore.MatchString(before) || ratesBehind.MatchString(behind) || otherTimes.MatchString(before+" "+behind) {
		return false
	}
	isTrigger := func(in string) bool {
		return slices.ContainsFunc(waitTriggers, func(trigger string) bool { return strings.Contains(in, trigger) })
	}
	return isTrigger(before) || isTrigger(behind)
}
