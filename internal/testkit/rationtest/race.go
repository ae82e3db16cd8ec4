//go:build race

package rationtest

// RaceDetector tells whether the race detector is compiled in.
const RaceDetector = true
