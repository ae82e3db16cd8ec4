package presets

import (
	"github.com/ration-go/ration/provider"
)

// AppStoreConnect returns the preset "app-store-connect": Apple's App Store Connect API. It also reads `X-Rate-Limit`.
func AppStoreConnect() *provider.Provider {
	return &provider.Provider{
		Name: "app-store-connect", Note: "by key, in a rolling hour; X-Rate-Limit tells how many, such as 3500. Bursts are refused though it has some left",
		Source: "https://developer.apple.com/documentation/appstoreconnectapi/identifying-rate-limits", AsOf: undatedCopy, Scope: provider.ScopeToken,
		Rules: []provider.MatchRule{{Status: []int{401}, Field: "errors[].code", Equals: "NOT_AUTHORIZED", Reason: provider.ReasonDeadToken}},
	}
}
