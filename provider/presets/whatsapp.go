package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// WhatsApp returns the preset "whatsapp": WhatsApp's Cloud API. It also reads the headers that "meta" reads.
func WhatsApp() *provider.Provider {
	return &provider.Provider{
		Name: "whatsapp", Limits: []limit.Limit{{Max: 80, Window: time.Second, Per: "number"}},
		Note:   "messages a second of each business number, and a message in 6 s to each customer; how many customers a day depends on the account's level",
		Source: "https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput", AsOf: "2026-05", Scope: provider.ScopeApp,
		Keys: numberInPath, Windows: []provider.WindowHeaders{},
		Rules: append([]provider.MatchRule{
			{Field: metaCode, Equals: "130429", Reason: provider.ReasonQuota, Scope: provider.ScopeObject},
			{Field: metaCode, Equals: "131056", Reason: provider.ReasonLock, MinWait: 6 * time.Second}, // too many to one customer: the message alone waits
			{Field: metaCode, Equals: "131048|131049", Reason: provider.ReasonDenied},                  // what was sent is taken for spam
			{Field: metaCode, Equals: "131057|131016|2", Reason: provider.ReasonOverload},
		}, metaRules()...),
		Adjust: adjustMeta,
	}
}

// numberInPath returns the business number that a request is sent from: /v23.0/106540352242922/messages.
func numberInPath(req *http.Request) map[string]string {
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	if len(path) == 3 && path[2] == "messages" {
		return map[string]string{"number": path[1]}
	}
	return map[string]string{"number": ""}
}
