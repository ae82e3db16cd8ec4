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
	if _, err := askAll[bool](all, "Spin", func(int) Order { return Order{} }); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// Spin does nothing, without rest, until the process ends.
func (j *jobs) Spin(Order, *bool) error {
	begun := make(chan error)
	var over atomic.Bool
	j.ends = append(j.ends, func() { over.Store(true) })
	go func() {
		runtime.LockOSThread()
		err := giveWay()
		begun <- err
		for err == nil && !over.Load() {
		}
	}()
	return <-begun
}
