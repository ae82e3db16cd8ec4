package ration

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/jsonprefix"
)

// What the answers of single providers say that their data cannot, in the order of
// their names.

// adjustBinance reads the weights used, whose window is in the header's name.
func adjustBinance(a *Answer, f *Feedback) {
	var names []string
	for name := range a.Header {
		if strings.HasPrefix(strings.ToUpper(name), "X-MBX-") && nameOf(name) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		upper := strings.ToUpper(name)
		length, isWeight := strings.CutPrefix(upper, "X-MBX-USED-WEIGHT-")
		scope := ScopeIP
		if !isWeight {
			var isOrders bool
			if length, isOrders = strings.CutPrefix(upper, "X-MBX-ORDER-COUNT-"); !isOrders {
				continue // X-MBX-USED-WEIGHT says the same again
			}
			scope = ScopeAccount
		}
		used, ok := parseNumber(a.Header.Get(name))
		if !ok || used < 0 {
			continue // sent where nothing is counted
		}
		w := Window{Name: strings.ToLower(strings.TrimPrefix(upper, "X-MBX-")), Used: usedOf(used), Scope: scope, By: upper}
		if isWeight {
			w.Unit = "weight"
		}
		if length != "" {
			units := map[byte]float64{'S': 1, 'M': 60, 'H': 3600, 'D': 86400}
			if n, ok := parseNumber(length[:len(length)-1]); ok {
				w.Length = lengthOf(n * units[length[len(length)-1]])
			}
		}
		f.Windows = append(f.Windows, w)
	}
	if len(names) > 0 && f.Scope == "" {
		f.Scope = ScopeIP
	}
	if f.Reason.Refuses() {
		// "IP banned until 1753100120000."
		if found := bannedUntil.FindStringSubmatch(a.text()); found != nil {
			f.Reason = ReasonBan
			if left := parseReset(found[1], ResetUnix, a.now()); left.Known {
				f.Wait, f.WaitBy = left, "the body's words"
			}
		}
	}
}

var bannedUntil = regexp.MustCompile(`banned until ([0-9]{10,13})\b`)

// adjustDiscord names the bucket that is empty, or that refused.
func adjustDiscord(a *Answer, f *Feedback) {
	bucket := nameOf(a.Header.Get("X-RateLimit-Bucket"))
	switch {
	case bucket == "" && f.Reason == ReasonQuota && f.Scope == ScopeToken+"+"+ScopeBucket:
		f.Scope = ScopeToken
	case bucket == "":
	case f.Reason == ReasonQuota && f.Scope == "":
		f.Scope, f.Object = ScopeToken+"+"+ScopeBucket, bucket
	case f.Reason == "":
		f.Scope, f.Object = ScopeBucket, bucket
	default:
		f.Object = bucket
	}
}

// adjustDockerHub tells whose pulls were counted: those of an address or of a user.
func adjustDockerHub(a *Answer, f *Feedback) {
	if f.Reason != ReasonQuota || f.Scope != "" {
		return
	}
	if source := a.Header.Get("Docker-RateLimit-Source"); isAddress(source) {
		f.Scope = ScopeIP
	} else if source != "" {
		f.Scope = ScopeUser
	}
}

// adjustGitHub tells whose quota is spent, and of which resource. A refusal that has
// quota left is one by a limit that is not told.
func adjustGitHub(a *Answer, f *Feedback) {
	if f.Reason != ReasonQuota {
		return
	}
	message, _ := a.Field("message")
	if message == "" {
		message, _ = a.Field("errors[].message")
	}
	message = strings.ToLower(message)
	_, of, speaks := strings.Cut(message, "api rate limit exceeded for ")
	if !speaks && a.Status != 200 && len(f.Windows) > 0 && f.Windows[0].Remaining.Known && !f.Windows[0].exhausted() {
		f.Reason, f.Scope, f.AtLeast = ReasonSecondary, "", time.Minute
		return
	}
	f.Scope = ScopeUser
	switch first, _, _ := strings.Cut(of, " "); {
	case strings.HasPrefix(of, "installation"):
		f.Scope = "installation"
	case isAddress(strings.TrimSuffix(first, ".")):
		f.Scope = ScopeIP
	}
	if resource := nameOf(a.Header.Get("X-RateLimit-Resource")); resource != "" {
		f.Scope, f.Object = f.Scope.with(resource), resource
	}
}

// "You have performed a total of 5003 requests in the last hour. Our general maximum
// request limit is set at 5000 requests per hour."
var (
	instagramMade    = regexp.MustCompile(`total of ([0-9]{1,12}) requests`)
	instagramAllowed = regexp.MustCompile(`limit is set (?:at|to) ([0-9]{1,12}) requests`)
)

func adjustInstagram(a *Answer, f *Feedback) {
	if f.Reason != ReasonQuota {
		return
	}
	message, _ := a.Field("meta.error_message")
	message = strings.ToLower(message[:min(len(message), textWithin)])
	allowed := instagramAllowed.FindStringSubmatch(message)
	if allowed == nil {
		return
	}
	limit, _ := parseNumber(allowed[1])
	w := Window{Limit: limitOf(limit), Length: told(time.Hour), Scope: ScopeToken, By: "the body's words"}
	if made := instagramMade.FindStringSubmatch(message); made != nil {
		used, _ := parseNumber(made[1])
		w.Used, w.Remaining = usedOf(used), remainingOf(limit-used, true)
	}
	f.Windows = append(f.Windows, w)
}

// adjustLinkedIn finds a part of an answer that was refused by itself.
func adjustLinkedIn(a *Answer, f *Feedback) {
	if a.Status != 200 || f.Reason != "" {
		return
	}
	var refused func(value jsonprefix.Value) bool
	refused = func(value jsonprefix.Value) bool {
		if value.Kind == jsonprefix.Object && value.At("status").Text == "429" && value.At("serviceErrorCode").Kind != jsonprefix.None {
			return true
		}
		return slices.ContainsFunc(value.Members, func(member jsonprefix.Member) bool { return refused(member.Value) })
	}
	if refused(a.body()) {
		f.Reason, f.ReasonBy = ReasonPartial, "a status 429 within the body"
	}
}

// adjustNCBI reads the limit. The field api-key is the caller's address or its key:
// it is looked at, and not kept.
func adjustNCBI(a *Answer, f *Feedback) {
	if f.Reason != ReasonQuota {
		return
	}
	if key, found := a.Field("api-key"); found && !isAddress(key) {
		f.Scope = ScopeToken
	}
	if limit, found := a.number("limit"); found {
		f.Windows = append(f.Windows, Window{Limit: limitOf(limit), Length: told(time.Second), Scope: f.Scope, By: "the body's limit"})
	}
}

// adjustOkta takes a limit of 0 for what Okta says by it: too many requests at once.
// Neither figure is one of a window.
func adjustOkta(a *Answer, f *Feedback) {
	limit, found := parseNumber(a.Header.Get("X-Rate-Limit-Limit"))
	if found && limit == 0 && a.Status == 429 {
		f.Reason, f.Windows = ReasonConcurrency, nil
	}
}

// adjustSalesforce reads "api-usage=25/5000; per-app-api-usage=17/250(appName=sample)".
func adjustSalesforce(a *Answer, f *Feedback) {
	const header = "Sforce-Limit-Info"
	value := a.Header.Get(header)
	if len(value) > textWithin {
		return
	}
	for pair := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ';' || c == ',' }) {
		name, ratio, _ := strings.Cut(strings.TrimSpace(pair), "=")
		ratio, _, _ = strings.Cut(ratio, "(")
		used, limit := parseRatio(ratio)
		if name = nameOf(name); name == "" || !limit.said || len(f.Windows) >= mostWindows {
			continue
		}
		w := Window{Name: name, By: header}
		switch name {
		case "api-usage":
			w.Length, w.Scope = told(aDay), ScopeOrg
		case "per-app-api-usage":
			w.Length, w.Scope = told(aDay), ScopeApp
		}
		w.count(limit, count{}, used, true)
		f.Windows = append(f.Windows, w)
	}
}

// adjustZendesk reads the windows of endpoints, "total=100; remaining=99; resets=41",
// and tells which refused: where the account has something left, it was an endpoint's.
func adjustZendesk(a *Answer, f *Feedback) {
	var names []string
	for name := range a.Header {
		if strings.HasPrefix(strings.ToLower(name), "zendesk-ratelimit-") && nameOf(name) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := a.Header.Get(name)
		if len(value) > textWithin || len(f.Windows) >= mostWindows {
			continue
		}
		w := Window{Name: nameOf(strings.ToLower(name)[len("zendesk-ratelimit-"):]), Scope: ScopeEndpoint, By: name}
		var limit, remaining count
		for pair := range strings.SplitSeq(value, ";") {
			key, number, _ := strings.Cut(strings.TrimSpace(pair), "=")
			switch key {
			case "total":
				limit = parseCount(number)
			case "remaining":
				remaining = parseCount(number)
			case "resets":
				w.Reset = parseReset(number, ResetSeconds, a.now())
			}
		}
		if w.count(limit, remaining, count{}, f.Reason.Refuses()); w.tells() {
			w.Object = w.Name
			f.Windows = append(f.Windows, w)
		}
	}
	if f.Reason != ReasonQuota || f.Scope != "" {
		return
	}
	account := slices.IndexFunc(f.Windows, func(w Window) bool { return w.Scope == ScopeAccount })
	switch {
	case slices.ContainsFunc(f.Windows, func(w Window) bool { return w.Scope == ScopeEndpoint && w.exhausted() }),
		account >= 0 && f.Windows[account].Remaining.Value > 0,
		strings.Contains(a.text(), "updating a single"):
		f.Scope = ScopeEndpoint
	case account >= 0 && f.Windows[account].exhausted():
		f.Scope = ScopeAccount
	}
}
