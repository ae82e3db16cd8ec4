// Package wakes proves that what one process of a fleet learns (a pause, a quarantine, other
// limits) reaches the callers that wait in the others, and what they do then.
package wakes
