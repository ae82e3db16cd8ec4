// Package digest makes the IDs of tokens and accounts: no secret can be read from one.
package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Length is the length of an ID in hexadecimal digits: 128 bits, so that two
// secrets with one ID do not occur.
const Length = 32

// Of returns the ID of s, a string of the given kind. The kind keeps an
// account from having the ID of a token with the same text.
func Of(key, kind, s string) string {
	sum := sha256.New()
	if key != "" {
		sum = hmac.New(sha256.New, []byte(key))
	}
	// A hash never fails to be written.
	_, _ = io.WriteString(sum, "ration/v1/"+kind+"\x00"+s)
	return hex.EncodeToString(sum.Sum(nil))[:Length]
}
