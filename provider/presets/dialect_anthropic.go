package presets

import (
	"strings"
	"time"

	"github.com/ration-go/ration/provider"
)

// Anthropic's resets are RFC 3339, but for those of subscriptions, "unified", which
// are Unix time under the same prefix and tell of shares.

func anthropicWindow(name, part string) provider.WindowHeaders {
	const prefix = "Anthropic-RateLimit-"
	w := provider.WindowHeaders{Name: name, Limit: prefix + part + "-Limit", Remaining: prefix + part + "-Remaining", Reset: prefix + part + "-Reset"}
	if name != "requests" {
		w.Unit = "tokens"
	}
	return w
}

const anthropicUnified = "Anthropic-Ratelimit-Unified-"

func adjustAnthropic(a *provider.Response, f *provider.Feedback) {
	if a.Cached() && !f.Reason.Refuses() {
		return
	}
	rejected := strings.EqualFold(a.Header.Get(anthropicUnified+"Status"), "rejected")
	reset := provider.ParseReset(a.Header.Get(anthropicUnified+"Reset"), provider.ResetAny, a.Now())
	for _, window := range []struct {
		name   string
		length time.Duration
	}{{"5h", 5 * time.Hour}, {"7d", 7 * aDay}} {
		share, ok := provider.ParseNumber(a.Header.Get(anthropicUnified + window.name + "-Utilization"))
		if !ok {
			continue
		}
		f.Windows = append(f.Windows, provider.Window{Name: window.name, UsedPercent: provider.PercentOf(share * 100), Length: provider.Some(window.length),
			Reset: provider.ParseReset(a.Header.Get(anthropicUnified+window.name+"-Reset"), provider.ResetAny, a.Now()), By: anthropicUnified + window.name + "-Utilization"})
	}
	if rejected && f.Reason == provider.ReasonQuota && reset.Known {
		f.Wait, f.WaitBy = reset, anthropicUnified+"Reset"
	}
}
