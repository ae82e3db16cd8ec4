package simulated

import "time"

// seriesPoints bounds a series: between half of it and all of it once a run has lasted a second.
const seriesPoints = 1024

// series is a curve in bounded memory: the largest value in each step of time since the provider's start. A step is
// one millisecond at first. When there are too many, each two are merged into one. It needs the lock of its provider.
type series struct {
	step    time.Duration
	largest []int
}

// add enters a value at that moment. valueAt returns the value at a step since the last addition. In such a step no call
// arrives, so the number of calls in the window only falls, and is largest at its beginning.
func (s *series) add(at time.Duration, value int, valueAt func(time.Duration) int) {
	if s.step == 0 {
		s.step = time.Millisecond
	}
	at = max(at, 0) // a call that the provider's first one overtook
	for at/s.step >= seriesPoints {
		s.coarsen()
	}
	i := int(at / s.step)
	for len(s.largest) <= i {
		s.largest = append(s.largest, valueAt(time.Duration(len(s.largest))*s.step))
	}
	s.largest[i] = max(s.largest[i], value)
}

// coarsen merges each two steps into one.
func (s *series) coarsen() {
	s.step *= 2
	half := (len(s.largest) + 1) / 2
	for i := range half {
		largest := s.largest[2*i]
		if 2*i+1 < len(s.largest) {
			largest = max(largest, s.largest[2*i+1])
		}
		s.largest[i] = largest
	}
	s.largest = s.largest[:half]
}

// points returns the steps so far.
func (s *series) points() []Point {
	points := make([]Point, len(s.largest))
	for i, largest := range s.largest {
		points[i] = Point{At: time.Duration(i) * s.step, InWindow: largest}
	}
	return points
}
