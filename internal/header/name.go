package header

import (
	"net/netip"
	"strings"
)

// Name returns a name that a provider sent, or nothing if it is none: a name has up to 64
// visible ASCII characters, and no '+'. Names are printed and stored, and a provider may
// send anything.
func Name(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 64 || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '+' }) {
		return ""
	}
	return s
}

// IsAddress reports whether a text is an IP address.
func IsAddress(s string) bool {
	_, err := netip.ParseAddr(strings.TrimSpace(s))
	return err == nil
}
