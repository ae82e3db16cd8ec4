// Package secrets proves that no secret of a token reaches an error, a log, an encoder, a
// panic or Redis.
package secrets
