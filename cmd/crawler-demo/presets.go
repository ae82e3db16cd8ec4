package main

import (
	"slices"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/simulated"
	"github.com/ration-go/ration/provider/presets"
)

// simulations are the quotas of the demo in each dialect: of the shape that the provider's has, and some of which can
// be seen to pass in a demo of 15 s.
var simulations = map[string]ration.Limit{
	"discord":   {Max: 250, Window: 5 * time.Second, Algorithm: ration.FixedWindow, FirstUse: true},
	"github":    {Max: 500, Window: 7 * time.Second, Algorithm: ration.FixedWindow, FirstUse: true},
	"ietf":      {Max: 400, Window: 5 * time.Second, Algorithm: ration.FixedWindow},
	"instagram": {Max: 400, Window: 5 * time.Second},
	"meta":      {Max: 200, Window: 5 * time.Second},
	"openai":    {Max: 250, Window: 5 * time.Second, Algorithm: ration.GCRA, Burst: 250},
	"shopify":   {Max: 40, Window: 2 * time.Second, Algorithm: ration.GCRA, Burst: 40},
	"x":         {Max: 300, Window: 7 * time.Second, Algorithm: ration.FixedWindow, FirstUse: true},
}

// presetOf is the preset by which a provider of that dialect is called.
func presetOf(dialect string) string {
	if dialect == "ietf" {
		return "generic" // drafts are no provider
	}
	return dialect
}

// dialect is what the demo's provider speaks; empty: as Instagram did.
func (o options) dialect() string {
	if o.simulate == "" && slices.Contains(simulated.Dialects(), o.provider) {
		return o.provider
	}
	return o.simulate
}

// namesScopes reports whether the provider's preset says which scopes a request has.
func (o *options) namesScopes() bool {
	preset, err := presets.Named(o.provider)
	return err == nil && preset.Scopes != nil
}

// resolvePresets finds what -simulate and -provider name, and takes from it what no other flag says.
func (o *options) resolvePresets(given map[string]bool) error {
	if o.simulate != "" {
		if _, err := simulated.DialectNamed(o.simulate); err != nil {
			return badf("-simulate: %w", err)
		}
	}
	if o.provider != "" {
		preset, err := presets.Named(o.provider)
		if err != nil {
			return badf("-provider: %w", err)
		}
		if len(o.limits) == 0 {
			o.limits, o.limitsBy = preset.Limits, "-provider "+o.provider+","
			switch n := len(o.limits); {
			case n == 0:
				return badf("-provider %s names no limit that all callers have (%s): give yours, such as -limit 5000/1h", o.provider, preset.Note)
			case n > 1 && o.isDemo():
				return badf("-provider %s names %d limits, and the demo's provider has one: give -limit", o.provider, n)
			}
		}
	}
	switch {
	case o.dialect() != "" && o.isDemo():
		o.preset = presetOf(o.dialect())
	case !o.isDemo():
		o.preset = o.provider
	}
	if o.preset != "" && !given["auth"] {
		o.auth = auth{"provider", o.preset}
	}
	return nil
}
