package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/jsonprefix"
	"github.com/ration-go/ration/provider"
)

// Meta returns the preset "meta": Meta's Graph API. It also reads `X-App-Usage`,
// `X-Page-Usage`, `X-Business-Use-Case-Usage`, `X-Ad-Account-Usage`,
// `X-FB-Ads-Insights-Throttle`; batches.
func Meta() *provider.Provider {
	return &provider.Provider{
		Name: "meta", Note: "percents of a hidden budget: 200 calls an hour for each user of an app, and shares by object",
		Source: "https://developers.facebook.com/docs/graph-api/overview/rate-limiting/", AsOf: undatedCopy, Scope: provider.ScopeApp,
		Cost: idsCost, Attach: provider.QueryNamed("access_token"),
		ReadBody: true,
		Windows:  []provider.WindowHeaders{},
		Rules:    metaRules(),
		Adjust:   adjustMeta,
	}
}

// Meta counts in percents of budgets that it does not tell, three at once: calls,
// and the time of its processors and of its clocks that they took. The worst decides.
// Refusals are 400 or 403 with a code, which tells whose budget is spent. The type,
// OAuthException, is that of a dead token too.

const metaCode = "error.code"

func metaRules() []provider.MatchRule {
	return []provider.MatchRule{
		{Field: metaCode, Equals: "190|102", Reason: provider.ReasonDeadToken},
		{Field: metaCode, Equals: "4|341", Reason: provider.ReasonQuota, Scope: provider.ScopeApp, MaxWait: time.Hour},
		{Field: metaCode, Equals: "17", Reason: provider.ReasonQuota, Scope: provider.ScopeUser, MaxWait: time.Hour},
		{Field: metaCode, Equals: "32", Reason: provider.ReasonQuota, Scope: provider.ScopePage, MaxWait: time.Hour},
		{Field: metaCode, Equals: "613", Reason: provider.ReasonQuota, MaxWait: time.Hour},
		{Field: metaCode, Equals: "80000|80001|80002|80003|80004|80005|80006|80008|80009|80014", Reason: provider.ReasonQuota, Scope: provider.ScopeObject, MaxWait: aDay},
		{Field: metaCode, Equals: "368", Reason: provider.ReasonBan, Scope: provider.ScopeUser, MinWait: time.Minute},
		{Field: metaCode, Equals: "10|200|100|3", Reason: provider.ReasonDenied},
		// Of other codes, words such as "limit" are about parameters.
		{Status: []int{400, 403}, Field: metaCode, Reason: ""},
	}
}

// metaTypes are the types of business use case that codes are about.
var metaTypes = map[string]string{
	"80000": "ads_insights", "80001": "pages", "80002": "instagram", "80003": "custom_audience", "80004": "ads_management",
	"80005": "leadgen", "80006": "messenger", "80008": "whatsapp", "80009": "catalog_management", "80014": "catalog_batch",
}

func adjustMeta(a *provider.Response, f *provider.Feedback) {
	if a.Cached() && !f.Reason.Refuses() {
		return
	}
	metaUsage(f, a, "X-App-Usage", "app", provider.ScopeApp)
	metaUsage(f, a, "X-Page-Usage", "page", provider.ScopePage)
	metaShares(f, a)
	metaAds(f, a)
	metaBatch(f, a)
	if code, _ := a.Field(metaCode); f.Reason == provider.ReasonQuota {
		metaWait(f, metaTypes[code])
	}
}

// metaHeader returns the JSON of a header, which some documents quote with ' for ".
func metaHeader(a *provider.Response, name string) jsonprefix.Value {
	text := a.Header.Get(name)
	if len(text) > provider.DefaultMaxBody {
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
			if n, ok := provider.ParseNumber(one.Text); ok {
				if used := provider.PercentOf(n); used.Known && (!most.Known || used.Value > most.Value) {
					most = used
				}
			}
		}
	}
	return most
}

var metaDimensions = []string{"call_count", "total_time", "total_cputime"}

func metaUsage(f *provider.Feedback, a *provider.Response, header, name string, scope provider.Scope) {
	if used := worst(metaHeader(a, header), metaDimensions...); used.Known {
		f.Windows = append(f.Windows, provider.Window{Name: name, UsedPercent: used, Length: provider.Some(time.Hour), Scope: scope, By: header})
	}
}

// metaShares reads the budgets of business use cases: of each object, one of each type.
// Objects may be named twice.
func metaShares(f *provider.Feedback, a *provider.Response) {
	const header = "X-Business-Use-Case-Usage"
	for _, object := range metaHeader(a, header).Members {
		for _, share := range object.Value.Members {
			w := provider.Window{Name: provider.NameOf(share.Value.At("type").Text), UsedPercent: worst(share.Value, metaDimensions...),
				Scope: provider.ScopeObject, Object: provider.NameOf(object.Name), By: header}
			if minutes, ok := provider.ParseNumber(share.Value.At("estimated_time_to_regain_access").Text); ok && minutes > 0 {
				w.Reset = provider.Some(provider.Seconds(minutes * 60))
				if !f.Cooldown.Known || w.Reset.Value > f.Cooldown.Value {
					f.Cooldown, f.CooldownBy = w.Reset, header
				}
			}
			if w.Tells() && len(f.Windows) < provider.MaxWindows {
				f.Windows = append(f.Windows, w)
			}
		}
	}
}

// metaAds reads the headers of the Marketing API.
func metaAds(f *provider.Feedback, a *provider.Response) {
	for _, header := range []string{"X-Ad-Account-Usage", "X-Fb-Ads-Insights-Throttle"} {
		value := metaHeader(a, header)
		if used := worst(value, "acc_id_util_pct"); used.Known {
			w := provider.Window{Name: "ad-account", UsedPercent: used, Refills: true, Scope: provider.ScopeObject, By: header}
			if left, ok := provider.ParseNumber(value.At("reset_time_duration").Text); ok && left > 0 {
				w.Reset = provider.Some(provider.Seconds(left))
			}
			f.Windows = append(f.Windows, w)
		}
		if used := worst(value, "app_id_util_pct"); used.Known {
			f.Windows = append(f.Windows, provider.Window{Name: "ads-insights", UsedPercent: used, Scope: provider.ScopeApp, By: header})
		}
	}
}

// metaWait takes the longest of the waits that the budgets of a type name, or of all
// budgets if none of that type is told of.
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

// metaBatch reads a batch, which is answered by 200 and an array of answers: it is to
// be delivered, and may say that the next request would be refused.
func metaBatch(f *provider.Feedback, a *provider.Response) {
	if a.Status != 200 || a.JSON().Kind != jsonprefix.Array {
		return
	}
	for _, item := range a.JSON().Members {
		code, _ := provider.ParseNumber(item.Value.At("code").Text)
		if code < 400 {
			continue
		}
		inner := provider.Response{Status: int(min(code, 599)), Body: []byte(item.Value.At("body").Text), Arrived: a.Arrived}
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

// idsCost is how many objects a request names: Meta counts each as a call.
func idsCost(req *http.Request) int {
	ids := req.URL.Query().Get("ids")
	if ids == "" {
		return 1
	}
	return 1 + strings.Count(ids, ",")
}
