package provider

import (
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/jsonprefix"
)

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
			if _, speaks := parseHeaderName(name); i == 1 && speaks || strings.EqualFold(name, "Retry-After") {
				continue // it is the window's, which may have something left; or it was read before, and says nothing
			}
			letters := onlyLetters(name)
			if at := strings.Index(letters, "retryafter"); at >= 0 && i == 0 {
				letters = letters[at:] // and what it is of
				names = map[string]bool{letters: true}
			}
			for len(letters) > 0 && !names[letters] {
				letters = letters[1:] // whatever stands before the words
			}
			if letters == "" || isBeta(strings.ToLower(name), "") {
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
