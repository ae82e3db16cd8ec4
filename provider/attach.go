package provider

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// An Attach puts a token's secret into a request, which is a copy that it may change. If it
// fails nothing is sent: the request gives its slot back and the caller gets the error. The
// request's context is the caller's: it ends when the caller gives up, so an Attach that
// asks somebody, to sign the request for instance, passes it on. It may be called
// concurrently.
type Attach func(req *http.Request, secret string) error

// Bearer sets "Authorization: Bearer SECRET". It fails if the secret has the word already, or a line break.
func Bearer(req *http.Request, secret string) error {
	if len(secret) > 7 && strings.EqualFold(secret[:7], "Bearer ") {
		return errors.New(`ration: the secret begins with "Bearer ", which is added to it: make the token without that`)
	}
	if strings.ContainsFunc(secret, unicode.IsControl) {
		return errors.New("ration: the secret has a line break or another control character: trim what was read from a file")
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	return nil
}

// HeaderNamed returns an Attach that sets the header to the secret.
func HeaderNamed(name string) Attach {
	return func(req *http.Request, secret string) error {
		req.Header.Set(name, secret)
		return nil
	}
}

// QueryNamed returns an Attach that sets the query parameter to the secret, and leaves the
// others unchanged. Prefer a header if the provider takes one: proxies and servers log URLs.
func QueryNamed(name string) Attach {
	return func(req *http.Request, secret string) error {
		pairs := strings.Split(req.URL.RawQuery, "&")
		kept := pairs[:0]
		for _, pair := range pairs {
			key, _, _ := strings.Cut(pair, "=")
			if decoded, err := url.QueryUnescape(key); pair == "" || err == nil && decoded == name {
				continue
			}
			kept = append(kept, pair)
		}
		kept = append(kept, url.QueryEscape(name)+"="+url.QueryEscape(secret))
		req.URL.RawQuery = strings.Join(kept, "&")
		return nil
	}
}
