package store

import (
	"math"
	"time"
)

// A Histogram counts times: at 0 those of at most a millisecond, and at i those of at most 2^(i/8) milliseconds that are above 2^((i-1)/8).
// So what it says of them is at most 5 % away. Nil counts none.
type Histogram map[int]int

// HistogramBuckets is how many places a Histogram has. What is longer than 230 s is counted in the last one.
const HistogramBuckets = 144

// HistogramBucket returns where a time is counted.
func HistogramBucket(d time.Duration) int {
	if d <= time.Millisecond {
		return 0
	}
	return min(int(math.Ceil(8*math.Log2(float64(d)/float64(time.Millisecond)))), HistogramBuckets-1)
}

// middle returns the time that stands for those of a bucket.
func middle(bucket int) float64 {
	if bucket == 0 {
		return 0
	}
	return float64(time.Millisecond) * math.Exp2((float64(bucket)-0.5)/8)
}

// Add adds what another one counts, and returns the sum, which may be h.
func (h Histogram) Add(other Histogram) Histogram {
	if h == nil && len(other) > 0 {
		h = make(Histogram, len(other))
	}
	for i, n := range other {
		h[i] += n
	}
	return h
}

// Count returns how many times are counted.
func (h Histogram) Count() (n int) {
	for _, one := range h {
		n += one
	}
	return n
}

// Mean returns their mean; zero: there are none.
func (h Histogram) Mean() time.Duration {
	sum, n := 0.0, 0
	for i, one := range h {
		sum, n = sum+float64(one)*middle(i), n+one
	}
	return time.Duration(sum / float64(max(1, n)))
}

// Quantile returns the time that a part of them are at most, from 0 to 1; zero: there are none, or it is at most a millisecond.
func (h Histogram) Quantile(part float64) time.Duration {
	left := max(1, int(math.Ceil(part*float64(h.Count()))))
	for i := range HistogramBuckets {
		if left -= h[i]; left <= 0 {
			return time.Duration(middle(i))
		}
	}
	return 0
}
