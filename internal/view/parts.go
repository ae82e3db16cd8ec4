package view

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/endpoint"
	"github.com/ration-go/ration/store"
)

// A pause with a Key is of a part of an account, or of all: an endpoint, an object of one, or a scope of limits. People name it by the
// endpoint that was refused.

// EndpointKey returns the key of an endpoint as people write it, "GET https://api.test/users/7", in which IDs do not matter. What is a key
// is returned as it is.
func EndpointKey(text string) (key string, err error) {
	if !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return text, nil
	}
	method, address, _ := strings.Cut(text, " ")
	req, err := http.NewRequest(strings.ToUpper(method), strings.TrimSpace(address), nil)
	if err != nil || req.URL.Host == "" {
		return "", fmt.Errorf("%q is no endpoint: write it as \"GET https://api.test/users\"", text)
	}
	return string(cooldown.EndpointKey(req)), nil
}

var (
	inCause = regexp.MustCompile(`https?://[^\s,]+`)
	// inRefusal finds the request in the cause of a refusal.
	inRefusal = regexp.MustCompile(` from ([A-Z]+ https?://[^\s,]+)`)
)

// withoutIDs returns a text with "*" for the IDs of objects in its addresses.
func withoutIDs(text string) string { return inCause.ReplaceAllStringFunc(text, endpoint.Address) }

// refused returns the endpoint whose refusal is a pause's cause, "GET https://api.test/likes/*"; "": it is none, or the pause is of a scope or a
// host, which is more than that endpoint.
func refused(p store.Pause) string {
	found := inRefusal.FindStringSubmatch(p.Cause)
	if kind := cooldown.Key(p.Key).Kind(); found == nil || kind == "scope" || kind == "host" {
		return ""
	}
	return withoutIDs(found[1])
}

// PartsOf returns the pauses of an endpoint, given by its key, and of its objects that were refused; with an account only those of that.
func PartsOf(d *store.Description, account, key string) (parts []store.Pause) {
	for _, p := range d.Pauses {
		if p.Key == "" || account != "" && p.Account != account {
			continue
		}
		if of, err := EndpointKey(refused(p)); p.Key == key || err == nil && of == key {
			parts = append(parts, p)
		}
	}
	return parts
}

// nameOfPart names a part that is paused.
func nameOfPart(p store.Pause) string {
	switch kind := cooldown.Key(p.Key).Kind(); kind {
	case "endpoint", "object":
		return "an " + kind
	case "scope", "host":
		return "a " + kind
	}
	return "part " + ShortID(p.Key)
}
