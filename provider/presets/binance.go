package presets

import (
	"strings"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// Binance returns the preset "binance": Binance's spot API. It also reads
// `X-MBX-USED-WEIGHT-*`, `X-MBX-ORDER-COUNT-*`.
func Binance() *provider.Provider {
	return &provider.Provider{
		Name: "binance", Limits: []limit.Limit{fixed(6000, time.Minute)},
		Note:   "units of weight, which responses announce; also 61,000 requests in 5 minutes; orders are counted by account",
		Source: "https://github.com/binance/binance-spot-api-docs/blob/master/enums.md", AsOf: "2026-07", Scope: provider.ScopeIP,
		Attach:  provider.HeaderNamed("X-MBX-APIKEY"),
		Windows: []provider.WindowHeaders{}, // the names have the windows in them
		Rules: []provider.MatchRule{
			{Status: []int{418}, Reason: provider.ReasonBan, Scope: provider.ScopeIP, MinWait: 2 * time.Minute, MaxWait: 3 * aDay},
			{Status: []int{400, 429}, Field: "code", Equals: "-1015", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount},
			{Status: []int{429}, Reason: provider.ReasonQuota, Scope: provider.ScopeIP, MaxWait: time.Minute},
			{Field: "code", Equals: "-1003", Reason: provider.ReasonQuota, Scope: provider.ScopeIP},
			{Status: []int{400, 401, 403}, Field: "code", Equals: "-2014|-2015", Reason: provider.ReasonDeadToken},
			{Status: []int{403}, Reason: provider.ReasonBan, Scope: provider.ScopeIP, MinWait: time.Minute},
		},
		Adjust: adjustBinance,
	}
}

// adjustBinance reads the weights used, in headers whose names have the length of the window,
// such as X-MBX-USED-WEIGHT-1M.
func adjustBinance(r *provider.Response, f *provider.Feedback) {
	names := headerNames(r, "X-MBX-")
	for _, name := range names {
		upper := strings.ToUpper(name)
		length, isWeight := strings.CutPrefix(upper, "X-MBX-USED-WEIGHT-")
		scope := provider.ScopeIP
		if !isWeight {
			var isOrders bool
			if length, isOrders = strings.CutPrefix(upper, "X-MBX-ORDER-COUNT-"); !isOrders {
				continue // X-MBX-USED-WEIGHT repeats the shortest window
			}
			scope = provider.ScopeAccount
		}
		used, ok := header.Number(r.Header.Get(name))
		if !ok || used < 0 {
			continue // it is -1 if nothing is counted
		}
		w := provider.Window{Name: strings.ToLower(strings.TrimPrefix(upper, "X-MBX-")), Used: provider.OptionalOf(header.Used(used)), Scope: scope, By: upper}
		if isWeight {
			w.Unit = "weight"
		}
		if length != "" {
			units := map[byte]float64{'S': 1, 'M': 60, 'H': 3600, 'D': 86400}
			if n, ok := header.Number(length[:len(length)-1]); ok {
				w.Length = provider.OptionalOf(header.Length(n * units[length[len(length)-1]]))
			}
		}
		f.Windows = append(f.Windows, w)
	}
	if len(names) > 0 && f.Scope == "" {
		f.Scope = provider.ScopeIP
	}
	if f.Reason.Refuses() {
		// "IP banned until 1753100120000."
		if found := bannedUntil.find(r.Text()); found != nil {
			f.Reason = provider.ReasonBan
			if left, known := header.ResetUnix(found[1], r.ServerTime()); known {
				f.Wait, f.WaitBy = provider.Some(left), inWords
			}
		}
	}
}

var bannedUntil = pattern{text: `banned until ([0-9]{10,13})\b`}
