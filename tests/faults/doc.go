// Package faults proves that a Transport keeps its promises when its surroundings fail:
// connections that break and are retried by net/http, hostile headers, bodies that end
// early, HTTP/2 resets, revoked tokens, and callers that panic or give up.
package faults
