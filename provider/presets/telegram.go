package presets

import (
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Telegram returns the preset "telegram": Telegram's Bot API. It puts the bot's token into the path: a
// request is to https://api.telegram.org/sendMessage.
func Telegram() *provider.Provider {
	return &provider.Provider{
		Name: "telegram", Limits: []limit.Limit{limit.PerSecond(30)},
		Note:   "messages of a bot, about; also one a second to a chat, and 20 a minute to a group",
		Source: "https://core.telegram.org/bots/faq", AsOf: undatedCopy, Scope: provider.ScopeToken,
		Attach:     attachBot,
		Windows:    []provider.WindowHeaders{},
		WaitFields: []string{"parameters.retry_after"},
		Rules: []provider.MatchRule{
			{Field: "error_code", Equals: "429", Reason: provider.ReasonQuota, Scope: provider.ScopeToken, MinWait: time.Second, MaxWait: aDay},
			{Field: "error_code", Equals: "401", Reason: provider.ReasonDeadToken},
		},
	}
}

// attachBot puts the token into the path, unless one is there.
func attachBot(req *http.Request, secret string) error {
	if !strings.HasPrefix(req.URL.Path, "/bot") {
		url := *req.URL
		url.Path, url.RawPath = "/bot"+secret+url.Path, ""
		req.URL = &url
	}
	return nil
}
