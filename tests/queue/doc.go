// Package queue proves that no slot is lost to callers that are gone: those that give up, and those whose
// process was killed or stopped; and that processes that have just begun keep the limit from their first call on.
package queue
