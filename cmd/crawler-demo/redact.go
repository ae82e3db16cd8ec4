package main

import (
	"errors"
	"net/url"
	"strings"

	"github.com/ration-go/ration/internal/censor"
)

// redacted stands where a secret was.
const redacted = "[token]"

// A redactor keeps the tokens' secrets out of all that is shown or kept. That is
// more than not printing them: providers repeat a token in what they answer, as
// Instagram's paging.next does, and errors repeat URLs.
type redactor struct {
	param   string // the query parameter that is the secret's place; "": none
	secrets map[string]bool
	spelled *censor.Censor
}

func newRedactor(a auth, secrets []string) *redactor {
	c := &redactor{param: a.param(), secrets: make(map[string]bool), spelled: censor.New(redacted, secrets...)}
	for _, secret := range secrets {
		c.secrets[secret] = true
	}
	return c
}

// text returns s with every secret replaced, however it is spelled.
func (c *redactor) text(s string) string { return c.spelled.Text(s) }

// url returns the URL as it is requested and kept: without its fragment, which is never
// sent, and without query parameters that hold a secret. If nothing is removed the URL stays
// as written. A secret anywhere else in it is an error.
func (c *redactor) url(written string, u *url.URL) (string, error) {
	kept := make([]string, 0, 8)
	dropped := false
	if u.RawQuery != "" {
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			key, value, _ := strings.Cut(pair, "=")
			if c.holdsSecret(key, value) {
				dropped = true
				continue
			}
			kept = append(kept, pair)
		}
	}
	if dropped || u.Fragment != "" || strings.HasSuffix(written, "#") {
		clean := *u
		clean.RawQuery, clean.Fragment, clean.RawFragment = strings.Join(kept, "&"), "", ""
		written = clean.String()
	}
	if c.text(written) != written {
		return "", errors.New("the URL has a token in it: leave it out, -auth says how it is attached")
	}
	return written, nil
}

func (c *redactor) holdsSecret(key, value string) bool {
	key, _ = url.QueryUnescape(key)
	value, _ = url.QueryUnescape(value)
	return c.param != "" && key == c.param || c.secrets[value] || value == redacted
}
