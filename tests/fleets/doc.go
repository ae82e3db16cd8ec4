// Package fleets runs fleets of processes in real time against simulated providers, which
// judge them: the fleet uses its whole quota, and no provider ever refuses it. It wants the
// machine for itself.
package fleets
