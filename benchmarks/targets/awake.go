package main

import (
	"context"
	"runtime"
	"sync/atomic"
)

// A core falls asleep where it waits for an answer, and to be woken takes longer than many
// an answer. What that costs is told by racers whose cores are kept awake: by a process for
// each that does nothing, whenever nobody else has anything to do.

// onAwakeCores is what is behind the name of such a racer.
const onAwakeCores = ",cores-awake"

// keptAwake returns the racer on cores that are awake.
func keptAwake(r racer) racer {
	r.name += onAwakeCores
	r.awake = true
	return r
}

// keepAwake keeps the cores awake until its end.
func (b *bench) keepAwake(ctx context.Context) (end func(), err error) {
	all, end, err := startChildren(ctx, b.progress, runtime.NumCPU())
	if err != nil {
		return nil, err
	}
	if _, err := askAll[bool](all, func(int) order { return order{Do: "spin"} }); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// spinInChild does nothing, without rest, until the process ends.
func spinInChild(_ context.Context, _ order, ends *[]func()) (any, error) {
	begun := make(chan error)
	var over atomic.Bool
	*ends = append(*ends, func() { over.Store(true) })
	go func() {
		runtime.LockOSThread()
		err := giveWay()
		begun <- err
		for err == nil && !over.Load() {
		}
	}()
	return true, <-begun
}
