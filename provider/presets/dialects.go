package presets

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/jsonprefix"

	"github.com/ration-go/ration/provider"
)

// What the answers of single providers say that their data cannot, in the order of
// their names.

// adjustBinance reads the weights used, whose window is in the header's name.
func adjustBinance(a *provider.Response, f *provider.Feedback) {
	var names []string
	for name := range a.Header {
		if strings.HasPrefix(strings.ToUpper(name), "X-MBX-") && provider.NameOf(name) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		upper := strings.ToUpper(name)
		length, isWeight := strings.CutPrefix(upper, "X-MBX-USED-WEIGHT-")
		scope := provider.ScopeIP
		if !isWeight {
			var isOrders bool
			if length, isOrders = strings.CutPrefix(upper, "X-MBX-ORDER-COUNT-"); !isOrders {
				continue // X-MBX-USED-WEIGHT says the same again
			}
			scope = provider.ScopeAccount
		}
		used, ok := provider.ParseNumber(a.Header.Get(name))
		if !ok || used < 0 {
			continue // sent where nothing is counted
		}
		w := provider.Window{Name: strings.ToLower(strings.TrimPrefix(upper, "X-MBX-")), Used: provider.UsedOf(used), Scope: scope, By: upper}
		if isWeight {
			w.Unit = "weight"
		}
		if length != "" {
			units := map[byte]float64{'S': 1, 'M': 60, 'H': 3600, 'D': 86400}
			if n, ok := provider.ParseNumber(length[:len(length)-1]); ok {
				w.Length = provider.LengthOf(n * units[length[len(length)-1]])
			}
		}
		f.Windows = append(f.Windows, w)
	}
	if len(names) > 0 && f.Scope == "" {
		f.Scope = provider.ScopeIP
	}
	if f.Reason.Refuses() {
		// "IP banned until 1753100120000."
		if found := bannedUntil.FindStringSubmatch(a.Text()); found != nil {
			f.Reason = provider.ReasonBan
			if left := provider.ParseReset(found[1], provider.ResetUnix, a.Now()); left.Known {
				f.Wait, f.WaitBy = left, "the body's words"
			}
		}
	}
}

var bannedUntil = regexp.MustCompile(`banned until ([0-9]{10,13})\b`)

// adjustDiscord names the bucket that is empty, or that refused.
func adjustDiscord(a *provider.Response, f *provider.Feedback) {
	bucket := provider.NameOf(a.Header.Get("X-RateLimit-Bucket"))
	switch {
	case bucket == "" && f.Reason == provider.ReasonQuota && f.Scope == provider.ScopeToken+"+"+provider.ScopeBucket:
		f.Scope = provider.ScopeToken
	case bucket == "":
	case f.Reason == provider.ReasonQuota && f.Scope == "":
		f.Scope, f.Object = provider.ScopeToken+"+"+provider.ScopeBucket, bucket
	case f.Reason == "":
		f.Scope, f.Object = provider.ScopeBucket, bucket
	default:
		f.Object = bucket
	}
}

// adjustDockerHub tells whose pulls were counted: those of an address or of a user.
func adjustDockerHub(a *provider.Response, f *provider.Feedback) {
	if f.Reason != provider.ReasonQuota || f.Scope != "" {
		return
	}
	if source := a.Header.Get("Docker-RateLimit-Source"); provider.IsAddress(source) {
		f.Scope = provider.ScopeIP
	} else if source != "" {
		f.Scope = provider.ScopeUser
	}
}

// adjustGitHub tells whose quota is spent, and of which resource. A refusal that has
// quota left is one by a limit that is not told.
func adjustGitHub(a *provider.Response, f *provider.Feedback) {
	if f.Reason != provider.ReasonQuota {
		return
	}
	message, _ := a.Field("message")
	if message == "" {
		message, _ = a.Field("errors[].message")
	}
	message = strings.ToLower(message)
	_, of, speaks := strings.Cut(message, "api rate limit exceeded for ")
	if !speaks && a.Status != 200 && len(f.Windows) > 0 && f.Windows[0].Remaining.Known && !f.Windows[0].Exhausted() {
		f.Reason, f.Scope, f.MinWait = provider.ReasonSecondary, "", time.Minute
		return
	}
	f.Scope = provider.ScopeUser
	switch first, _, _ := strings.Cut(of, " "); {
	case strings.HasPrefix(of, "installation"):
		f.Scope = "installation"
	case provider.IsAddress(strings.TrimSuffix(first, ".")):
		f.Scope = provider.ScopeIP
	}
	if resource := provider.NameOf(a.Header.Get("X-RateLimit-Resource")); resource != "" {
		f.Scope, f.Object = f.Scope.With(resource), resource
	}
}

// "You have performed a total of 5003 requests in the last hour. Our general maximum
// request limit is set at 5000 requests per hour."
var (
	instagramMade    = regexp.MustCompile(`total of ([0-9]{1,12}) requests`)
	instagramAllowed = regexp.MustCompile(`limit is set (?:at|to) ([0-9]{1,12}) requests`)
)

func adjustInstagram(a *provider.Response, f *provider.Feedback) {
	if f.Reason != provider.ReasonQuota {
		return
	}
	message, _ := a.Field("meta.error_message")
	message = strings.ToLower(message[:min(len(message), provider.MaxText)])
	allowed := instagramAllowed.FindStringSubmatch(message)
	if allowed == nil {
		return
	}
	limit, _ := provider.ParseNumber(allowed[1])
	w := provider.Window{Limit: provider.LimitOf(limit), Length: provider.Some(time.Hour), Scope: provider.ScopeToken, By: "the body's words"}
	if made := instagramMade.FindStringSubmatch(message); made != nil {
		used, _ := provider.ParseNumber(made[1])
		w.Used, w.Remaining = provider.UsedOf(used), provider.RemainingOf(limit-used, true)
	}
	f.Windows = append(f.Windows, w)
}

// adjustLinkedIn finds a part of an answer that was refused by itself.
func adjustLinkedIn(a *provider.Response, f *provider.Feedback) {
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
	if refused(a.JSON()) {
		f.Reason, f.ReasonBy = provider.ReasonPartial, "a status 429 within the body"
	}
}

// adjustNCBI reads the limit. The field api-key is the caller's address or its key:
// it is looked at, and not kept.
func adjustNCBI(a *provider.Response, f *provider.Feedback) {
	if f.Reason != provider.ReasonQuota {
		return
	}
	if key, found := a.Field("api-key"); found && !provider.IsAddress(key) {
		f.Scope = provider.ScopeToken
	}
	if limit, found := a.Number("limit"); found {
		f.Windows = append(f.Windows, provider.Window{Limit: provider.LimitOf(limit), Length: provider.Some(time.Second), Scope: f.Scope, By: "the body's limit"})
	}
}

// adjustOkta takes a limit of 0 for what Okta says by it: too many requests at once.
// Neither figure is one of a window.
func adjustOkta(a *provider.Response, f *provider.Feedback) {
	limit, found := provider.ParseNumber(a.Header.Get("X-Rate-Limit-Limit"))
	if found && limit == 0 && a.Status == 429 {
		f.Reason, f.Windows = provider.ReasonConcurrency, nil
	}
}

// adjustSalesforce reads "api-usage=25/5000; per-app-api-usage=17/250(appName=sample)".
func adjustSalesforce(a *provider.Response, f *provider.Feedback) {
	const header = "Sforce-Limit-Info"
	value := a.Header.Get(header)
	if len(value) > provider.MaxText {
		return
	}
	for pair := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ';' || c == ',' }) {
		name, ratio, _ := strings.Cut(strings.TrimSpace(pair), "=")
		ratio, _, _ = strings.Cut(ratio, "(")
		used, limit := provider.ParseRatio(ratio)
		if name = provider.NameOf(name); name == "" || !limit.Said || len(f.Windows) >= provider.MaxWindows {
			continue
		}
		w := provider.Window{Name: name, By: header}
		switch name {
		case "api-usage":
			w.Length, w.Scope = provider.Some(aDay), provider.ScopeOrg
		case "per-app-api-usage":
			w.Length, w.Scope = provider.Some(aDay), provider.ScopeApp
		}
		w.Count(limit, provider.Count{}, used, true)
		f.Windows = append(f.Windows, w)
	}
}

// adjustZendesk reads the windows of endpoints, "total=100; remaining=99; resets=41",
// and tells which refused: where the account has something left, it was an endpoint's.
func adjustZendesk(a *provider.Response, f *provider.Feedback) {
	var names []string
	for name := range a.Header {
		if strings.HasPrefix(strings.ToLower(name), "zendesk-ratelimit-") && provider.NameOf(name) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		value := a.Header.Get(name)
		if len(value) > provider.MaxText || len(f.Windows) >= provider.MaxWindows {
			continue
		}
		w := provider.Window{Name: provider.NameOf(strings.ToLower(name)[len("zendesk-ratelimit-"):]), Scope: provider.ScopeEndpoint, By: name}
		var limit, remaining provider.Count
		for pair := range strings.SplitSeq(value, ";") {
			key, number, _ := strings.Cut(strings.TrimSpace(pair), "=")
			switch key {
			case "total":
				limit = provider.ParseCount(number)
			case "remaining":
				remaining = provider.ParseCount(number)
			case "resets":
				w.Reset = provider.ParseReset(number, provider.ResetSeconds, a.Now())
			}
		}
		if w.Count(limit, remaining, provider.Count{}, f.Reason.Refuses()); w.Tells() {
			w.Object = w.Name
			f.Windows = append(f.Windows, w)
		}
	}
	if f.Reason != provider.ReasonQuota || f.Scope != "" {
		return
	}
	account := slices.IndexFunc(f.Windows, func(w provider.Window) bool { return w.Scope == provider.ScopeAccount })
	switch {
	case slices.ContainsFunc(f.Windows, func(w provider.Window) bool { return w.Scope == provider.ScopeEndpoint && w.Exhausted() }),
		account >= 0 && f.Windows[account].Remaining.Value > 0,
		strings.Contains(a.Text(), "updating a single"):
		f.Scope = provider.ScopeEndpoint
	case account >= 0 && f.Windows[account].Exhausted():
		f.Scope = provider.ScopeAccount
	}
}
