package presets

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/provider"
)

// Google returns the preset "google": Google's APIs. It also reads in the body which quota is spent.
func Google() *provider.Provider {
	return &provider.Provider{
		Name: "google", Note: "per minute and per day, by project and by user of the project",
		Source: "https://docs.cloud.google.com/docs/quotas/overview", AsOf: undatedCopy, Scope: provider.ScopeProject,
		Rules: googleRules(), WaitFields: []string{googleDelay}, Adjust: adjustGoogle,
	}
}

const (
	googleReason = "error.errors[].reason|error.details[].reason"
	googleDelay  = "error.details[].retryDelay"
)

// googleRules returns the rules of Google's APIs. They refuse with 403 or 429 and a reason; a
// 403 may also deny permission. A day's quota ends at midnight in California.
func googleRules() []provider.MatchRule {
	return []provider.MatchRule{
		{Field: googleReason, Equals: "dailyLimitExceeded|dailyLimitExceededUnreg", Reason: provider.ReasonQuota, Midnight: pacific},
		{Field: googleReason, Equals: "userRateLimitExceeded|userRateLimitExceededUnreg", Reason: provider.ReasonQuota, Scope: provider.ScopeUser},
		{Field: googleReason, Equals: "rateLimitExceeded|quotaExceeded|RATE_LIMIT_EXCEEDED|uploadLimitExceeded", Reason: provider.ReasonQuota},
		{Status: []int{401}, Field: "error.status|error.errors[].reason", Equals: "UNAUTHENTICATED|authError", Reason: provider.ReasonDeadToken},
		{Status: []int{403}, Field: "error.errors[].reason|error.status", Equals: "insufficientPermissions|domainPolicy|accessNotConfigured|forbidden|PERMISSION_DENIED", Reason: provider.ReasonDenied},
		{Status: []int{429}, Field: "error.status", Equals: "RESOURCE_EXHAUSTED", Reason: provider.ReasonQuota},
	}
}

// A googleQuota is a quota that a refusal names.
type googleQuota struct {
	name   string // such as GenerateRequestsPerMinutePerProjectPerModel-FreeTier, "Read requests per minute per user" or 1/min/{project}/{user}
	metric string // what it counts, such as youtube.googleapis.com/search_queries; empty: it is not named
	by     string // the place in the body
	value  string // how many it allows; empty: unknown
	spent  bool   // whether it says how many, and refuses
}

// adjustGoogle reads which quotas were violated, from their names: whom they are of, how long their windows are, and whether they are of a
// part of the API. The delay beside them is a minute's at most, also if it is the day's quota that was violated: that ends at midnight in
// California.
func adjustGoogle(r *provider.Response, f *provider.Feedback) {
	if !f.Reason.Refuses() {
		return
	}
	switch scope, _ := r.Field("error.details[].errors[].details.quotaErrorDetails.rateScope"); scope { // Google Ads
	case "ACCOUNT":
		f.Scope = cmp.Or(f.Scope, provider.ScopeAccount)
	case "DEVELOPER":
		f.Scope = cmp.Or(f.Scope, provider.ScopeApp)
	}
	quotas := googleQuotas(r)
	if len(quotas) == 0 {
		return
	}
	f.Windows = slices.DeleteFunc(f.Windows, func(w provider.Window) bool { return w.By == inWords || strings.HasPrefix(w.By, "the fields") })
	for _, quota := range quotas {
		w := provider.Window{Name: header.Name(quota.name), By: quota.by}
		isPart := quota.metric != "" && !isGoogleDefault(quota.metric)
		for _, word := range wordsOf(quota.name) {
			switch word {
			case "second", "s":
				w.Length = provider.Some(time.Second)
			case "minute", "min":
				w.Length = provider.Some(time.Minute)
			case "hour", "h":
				w.Length = provider.Some(time.Hour)
			case "day", "d":
				w.Length = provider.Some(aDay)
				f.Wait, f.WaitBy = provider.OptionalOf(header.Midnight(pacific, r.ServerTime())), "midnight in "+pacific
			case "project", "user", "model", "region":
				if !w.Scope.Has(provider.Scope(word)) {
					w.Scope = w.Scope.With(word)
				}
				isPart = isPart && word != "model" // which says the part
			}
		}
		if isPart {
			if w.Scope == "" {
				w.Scope = provider.ScopeProject
			}
			w.Scope = w.Scope.With(string(provider.ScopeEndpoint))
		}
		if n, known := header.Number(quota.value); known {
			w.Limit = provider.OptionalOf(header.Limit(n))
			w.Remaining = provider.OptionalOf(int64(0), quota.spent)
		}
		if (w.Name != "" || w.Length.Known) && len(f.Windows) < header.MaxWindows {
			f.Windows = append(f.Windows, w)
		}
		f.Scope = cmp.Or(f.Scope, w.Scope)
	}
}

// googleQuotas returns the quotas that a refusal names: those that were violated, or the one of an ErrorInfo, or that of a sentence.
func googleQuotas(r *provider.Response) (quotas []googleQuota) {
	metrics := r.Fields("error.details[].violations[].quotaMetric")
	ids := r.Fields("error.details[].violations[].quotaId")
	for i, id := range ids {
		quota := googleQuota{name: id, by: "the body's quotaId"}
		if len(metrics) == len(ids) {
			quota.metric = metrics[i]
		}
		quotas = append(quotas, quota)
	}
	if quotas != nil {
		return quotas
	}
	const metadata = "error.details[].metadata."
	field := func(name string) string { value, _ := r.Field(metadata + name); return value }
	name := field("quota_limit")
	if unit := field("quota_unit"); name == "" && unit != "" {
		name = unit
	}
	if name != "" {
		return append(quotas, googleQuota{name: name, metric: field("quota_metric"), by: "the body's quota_limit", value: field("quota_limit_value"), spent: true})
	}
	message, _ := r.Field("error.message")
	if found := googleSentence.find(message); found != nil {
		return append(quotas, googleQuota{name: found[2], metric: found[1], by: inWords})
	}
	if found := googleTokens.find(message); found != nil {
		return append(quotas, googleQuota{name: found[0], by: inWords})
	}
	return nil
}

var (
	googleSentence = pattern{text: `quota metric '([^']*)' and limit '([^']*)'`}
	googleTokens   = pattern{text: `Exhausted [a-z ]*tokens? per [a-z ]*`}
)

// isGoogleDefault reports whether a metric is of all requests, as youtube.googleapis.com/default and 'Queries' are.
func isGoogleDefault(metric string) bool {
	switch strings.ToLower(metric[strings.LastIndexByte(metric, '/')+1:]) {
	case "default", "default_requests", "default_group", "queries", "requests", "api_requests", "api_calls", "quota":
		return true
	}
	return false
}

// wordsOf returns the words of a name in lower case, whether they begin with capitals or stand apart.
func wordsOf(name string) []string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return strings.FieldsFunc(b.String(), func(c rune) bool { return !unicode.IsLetter(c) })
}
