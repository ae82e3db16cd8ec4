//go:build race

package ration_test

const raceDetector = true
