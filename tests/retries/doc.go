// Package retries proves what a Transport does with a request that is throttled or fails:
// when it is sent again, with which token and body, and what the caller gets in the end,
// whatever providers answer.
package retries
