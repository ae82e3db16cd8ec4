package simulated

import (
	"slices"
	"time"
)

// MostIn returns how many calls the fullest window has of those that came at some instants. It sorts them.
func MostIn(at []time.Time, window time.Duration) (most int) {
	slices.SortFunc(at, time.Time.Compare)
	first := 0
	for i := range at {
		for at[i].Sub(at[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
