//go:build !linux

package main

import "errors"

// canKeepAwake says whether a thread can give way to all others.
const canKeepAwake = false

func giveWay() error { return errors.ErrUnsupported }
