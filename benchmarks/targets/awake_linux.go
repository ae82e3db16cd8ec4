package main

import "golang.org/x/sys/unix"

// canKeepAwake says whether a thread can give way to all others.
const canKeepAwake = true

// giveWay has the calling thread run only where no other thread wants the core.
func giveWay() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
}
