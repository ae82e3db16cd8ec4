package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/internal/jsonprefix"
	"github.com/ration-go/ration/provider"
)

// Meta returns the preset "meta": Meta's Graph API. It also reads `X-App-Usage`,
// `X-Page-Usage`, `X-Business-Use-Case-Usage`, `X-Ad-Account-Usage`,
// `X-FB-Ads-Insights-Throttle`; batches.
func Meta() *provider.Provider {
	return &provider.Provider{
		Name: "meta", Note: "percentages of an unpublished budget: 200 calls an hour for each user of an app, and shares by object",
		Source: "https://developers.facebook.com/docs/graph-api/overview/rate-limiting/", AsOf: undatedCopy, Scope: provider.ScopeApp,
		Cost: idsCost, Attach: provider.QueryNamed("access_token"),
		ReadSuccessBody: true,
		Windows:         []provider.WindowHeaders{},
		Rules:           metaRules(),
		Adjust:          adjustMeta,
	}
}

const metaCode = "error.code"

// metaRules returns the rules of the Graph API. Its refusals have status 400 or 403, and a
// code that says whose budget is exhausted. Their type, OAuthException, says nothing: dead
// tokens have it too.
func metaRules() []provider.MatchRule {
	return []provider.MatchRule{
		{Field: metaCode, Equals: "190|102", Reason: provider.ReasonDeadToken},
		{Field: metaCode, Equals: "4|341", Reason: provider.ReasonQuota, Scope: provider.ScopeApp, MaxWait: time.Hour},
		{Field: metaCode, Equals: "17", Reason: provider.ReasonQuota, Scope: provider.ScopeUser, MaxWait: time.Hour},
		{Field: metaCode, Equals: "32", Reason: provider.ReasonQuota, Scope: provider.ScopePage, MaxWait: time.Hour},
		{Field: metaCode, Equals: "613", Reason: provider.ReasonQuota, MaxWait: time.Hour},
		{Field: metaCode, Equals: "80000|80001|80002|80003|80004|80005|80006|80008|80009|80014", Reason: provider.ReasonQuota, Scope: provider.ScopeObject, MaxWait: aDay},
		{Field: metaCode, Equals: "80007", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount, MaxWait: time.Hour}, // of a WhatsApp account
		{Field: metaCode, Equals: "130429", Reason: provider.ReasonQuota, Scope: provider.ScopeObject},                     // of a WhatsApp number
		{Field: metaCode, Equals: "368", Reason: provider.ReasonBan, Scope: provider.ScopeUser, MinWait: time.Minute},
		{Field: metaCode, Equals: "10|200|100|3", Reason: provider.ReasonDenied},
		// With other codes, words such as "limit" are about parameters.
		{Status: []int{400, 403}, Field: metaCode, Reason: ""},
	}
}

// metaTypes are the types of business use cases that codes are about.
var metaTypes = map[string]string{
	"80000": "ads_insights", "80001": "pages", "80002": "instagram", "80003": "custom_audience", "80004": "ads_management",
	"80005": "leadgen", "80006": "messenger", "80008": "whatsapp", "80009": "catalog_management", "80014": "catalog_batch",
}

// adjustMeta reads the windows, which are percentages of budgets that Meta hides. Each is
// measured in calls, in processor time and in total time, and the highest of these decides.
func adjustMeta(r *provider.Response, f *provider.Feedback) {
	if r.Cached() && !f.Reason.Refuses() {
		return
	}
	hour := provider.Some(time.Hour)
	metaUsage(f, metaHeader(r, "X-App-Usage"), provider.Window{Name: "app", Length: hour, Scope: provider.ScopeApp, By: "X-App-Usage"}, metaDimensions...)
	metaUsage(f, metaHeader(r, "X-Page-Usage"), provider.Window{Name: "page", Length: hour, Scope: provider.ScopePage, By: "X-Page-Usage"}, metaDimensions...)
	metaShares(f, r)
	metaAds(f, r)
	metaBatch(f, r)
	if code, _ := r.Field(metaCode); f.Reason == provider.ReasonQuota {
		metaWait(f, metaTypes[code])
	}
}

// metaHeader returns the JSON of a header. Some documents show it with ' in place of ".
func metaHeader(r *provider.Response, name string) jsonprefix.Value {
	text := r.Header.Get(name)
	if len(text) > 64<<10 {
		return jsonprefix.Value{}
	}
	if value := jsonprefix.Parse([]byte(text)); len(value.Members) > 0 {
		return value
	}
	return jsonprefix.Parse([]byte(strings.ReplaceAll(text, "'", `"`)))
}

// worst returns the highest of the members with these names.
func worst(value jsonprefix.Value, names ...string) provider.Optional[float64] {
	most := provider.Optional[float64]{}
	for _, name := range names {
		for _, one := range value.All(name) {
			if n, ok := header.Number(one.Text); ok {
				if used := provider.OptionalOf(header.Percent(n)); used.Known && (!most.Known || used.Value > most.Value) {
					most = used
				}
			}
		}
	}
	return most
}

var metaDimensions = []string{"call_count", "total_time", "total_cputime"}

// metaUsage adds a window if the value has one of the members that measure it.
func metaUsage(f *provider.Feedback, value jsonprefix.Value, w provider.Window, members ...string) {
	if w.UsedPercent = worst(value, members...); w.UsedPercent.Known {
		f.Windows = append(f.Windows, w)
	}
}

// metaShares reads the budgets of business use cases: each object has one of each type. An
// object may be there twice.
func metaShares(f *provider.Feedback, r *provider.Response) {
	const by = "X-Business-Use-Case-Usage"
	for _, object := range metaHeader(r, by).Members {
		for _, share := range object.Value.Members {
			w := provider.Window{Name: header.Name(share.Value.At("type").Text), UsedPercent: worst(share.Value, metaDimensions...),
				Scope: provider.ScopeObject, Object: header.Name(object.Name), By: by}
			if minutes, ok := header.Number(share.Value.At("estimated_time_to_regain_access").Text); ok && minutes > 0 {
				w.Reset = provider.Some(header.Seconds(minutes * 60))
				if !f.Cooldown.Known || w.Reset.Value > f.Cooldown.Value {
					f.Cooldown, f.CooldownBy = w.Reset, by
				}
			}
			if (w.UsedPercent.Known || w.Reset.Known) && len(f.Windows) < header.MaxWindows {
				f.Windows = append(f.Windows, w)
			}
		}
	}
}

// metaAds reads the headers of the Marketing API.
func metaAds(f *provider.Feedback, r *provider.Response) {
	for _, by := range []string{"X-Ad-Account-Usage", "X-Fb-Ads-Insights-Throttle"} {
		value := metaHeader(r, by)
		account := provider.Window{Name: "ad-account", Refills: true, Scope: provider.ScopeObject, By: by}
		if left, ok := header.Number(value.At("reset_time_duration").Text); ok && left > 0 {
			account.Reset = provider.Some(header.Seconds(left))
		}
		metaUsage(f, value, account, "acc_id_util_pct")
		metaUsage(f, value, provider.Window{Name: "ads-insights", Scope: provider.ScopeApp, By: by}, "app_id_util_pct")
	}
}

// metaWait sets the longest wait of the budgets of a type, or of all budgets if the response
// has none of that type.
func metaWait(f *provider.Feedback, kind string) {
	for _, any := range []bool{false, true} {
		for i := range f.Windows {
			w := &f.Windows[i]
			if w.Scope != provider.ScopeObject || !w.Reset.Known || w.Refills || !any && (kind == "" || w.Name != kind) || any && f.Scope != provider.ScopeObject {
				continue
			}
			if !f.Wait.Known || w.Reset.Value > f.Wait.Value {
				f.Wait, f.WaitBy, f.Object = w.Reset, w.By, w.Object
			}
		}
		if f.Wait.Known {
			return
		}
	}
}

// metaBatch reads the response to a batch: 200, and an array of responses. The caller gets it,
// but if a part was refused the next request would be too.
func metaBatch(f *provider.Feedback, r *provider.Response) {
	if r.Status != 200 || len(r.Fields("[].code")) == 0 {
		return
	}
	for _, item := range jsonprefix.Parse(r.Body).Members {
		code, _ := header.Number(item.Value.At("code").Text)
		if code < 400 {
			continue
		}
		inner := provider.Response{Status: int(min(code, 599)), Body: []byte(item.Value.At("body").Text), Arrived: r.Arrived}
		for _, rule := range metaRules() {
			if by := rule.Match(&inner); by != "" {
				if rule.Reason.Refuses() {
					f.Reason, f.ReasonBy, f.Scope = provider.ReasonPartial, by, rule.Scope
				}
				break
			}
		}
	}
}

// idsCost returns how many objects a request names: Meta counts each as a call.
func idsCost(req *http.Request) int {
	ids := req.URL.Query().Get("ids")
	if ids == "" {
		return 1
	}
	return 1 + strings.Count(ids, ",")
}
