// Package headroom works out how much of its limits a fleet uses, if it must use less than all: because
// competing clients spend a part, or because the limits are higher than what the provider allows.
package headroom

import (
	"math"

	"github.com/ration-go/ration/limit"
)

// mostLowered is the share of a limit that is never used, at most.
const mostLowered = 0.99

// Leave returns the limits, each lower by the share that is left to competing clients.
func Leave(limits []limit.Limit, share float64) []limit.Limit {
	all := make([]limit.Limit, len(limits))
	for i, l := range limits {
		l.Max = max(1, int(math.Round(float64(l.Max)*(1-share))))
		if l.Algorithm == limit.GCRA {
			l.Burst = min(max(1, int(math.Round(float64(l.BurstOrDefault())*(1-share)))), l.Max)
		}
		all[i] = l
	}
	return all
}

// Of returns the share of full limits that is not used under lower ones, and whether these can be the
// full ones lowered.
func Of(limits, full []limit.Limit) (share float64, is bool) {
	if len(limits) != len(full) {
		return 0, false
	}
	for i, l := range full {
		if !sameKind(limits[i], l) || limits[i].Max > l.Max {
			return 0, false
		}
		share = max(share, 1-float64(limits[i].Max)/float64(l.Max))
	}
	return share, share <= mostLowered
}

// sameKind reports whether two limits count in the same way, however much they allow.
func sameKind(a, b limit.Limit) bool {
	return a.Window == b.Window && a.Algorithm == b.Algorithm && a.Scope == b.Scope
}
