package ration

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// An Attach puts a token's secret into a request, which it may change.
type Attach func(req *http.Request, secret string)

// Bearer sets "Authorization: Bearer SECRET".
func Bearer(req *http.Request, secret string) {
	req.Header.Set("Authorization", bearerPrefix+secret)
}

const bearerPrefix = "Bearer "

// HeaderNamed returns an Attach that sets the header to the secret.
func HeaderNamed(name string) Attach {
	return func(req *http.Request, secret string) { req.Header.Set(name, secret) }
}

// QueryNamed returns an Attach that sets the query parameter to the secret, and
// leaves the others as they stand. Prefer a header where the provider takes one:
// a URL is what proxies and servers log.
func QueryNamed(name string) Attach {
	return func(req *http.Request, secret string) {
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
	}
}

// GrantOf returns the grant on which a response's request was sent, and whether
// there was one: there is none if it passed through without a token.
func GrantOf(resp *http.Response) (Grant, bool) {
	if resp == nil || resp.Request == nil {
		return Grant{}, false
	}
	g, _ := resp.Request.Context().Value(grantKey{}).(*Grant)
	if g == nil || g.budget == nil {
		return Grant{}, false
	}
	return *g, true
}

// A redactedError is an error whose text had a secret in it.
type redactedError struct {
	text string
	err  error
}

// redact returns err, with the token's ID in place of its secret: a Base may name
// the URL that it was asked for.
func redact(err error, t Token) error {
	secret, _ := t.open()
	if len(secret) < 4 {
		return err // no credential, and found in any text
	}
	text := err.Error()
	// As it is, and as it stands in a query, in a path and in quotes.
	quoted := strconv.Quote(secret)
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), quoted[1 : len(quoted)-1]} {
		text = strings.ReplaceAll(text, form, t.id)
	}
	if text == err.Error() {
		return err
	}
	return &redactedError{text: text, err: err}
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.err }

// Timeout tells what http.Client tells its caller.
func (e *redactedError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.err, &t) && t.Timeout()
}
