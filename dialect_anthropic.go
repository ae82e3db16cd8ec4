package ration

import (
	"strings"
	"time"
)

// Anthropic's resets are RFC 3339, but for those of subscriptions, "unified", which
// are Unix time under the same prefix and tell of shares.

func anthropicWindow(name, part string) WindowFields {
	const prefix = "Anthropic-RateLimit-"
	w := WindowFields{Name: name, Limit: prefix + part + "-Limit", Remaining: prefix + part + "-Remaining", Reset: prefix + part + "-Reset"}
	if name != "requests" {
		w.Unit = "tokens"
	}
	return w
}

const anthropicUnified = "Anthropic-Ratelimit-Unified-"

func adjustAnthropic(a *Answer, f *Feedback) {
	if a.cached() && !f.Reason.Refuses() {
		return
	}
	rejected := strings.EqualFold(a.Header.Get(anthropicUnified+"Status"), "rejected")
	reset := parseReset(a.Header.Get(anthropicUnified+"Reset"), ResetAny, a.now())
	for _, window := range []struct {
		name   string
		length time.Duration
	}{{"5h", 5 * time.Hour}, {"7d", 7 * aDay}} {
		share, ok := parseNumber(a.Header.Get(anthropicUnified + window.name + "-Utilization"))
		if !ok {
			continue
		}
		f.Windows = append(f.Windows, Window{Name: window.name, UsedPercent: percentOf(share * 100), Length: told(window.length),
			Reset: parseReset(a.Header.Get(anthropicUnified+window.name+"-Reset"), ResetAny, a.now()), By: anthropicUnified + window.name + "-Utilization"})
	}
	if rejected && f.Reason == ReasonQuota && reset.Known {
		f.Wait, f.WaitBy = reset, anthropicUnified+"Reset"
	}
}
