package provider

import (
	"net/http"
	"net/url"
	"strings"
)

// An Attach puts a token's secret into a request, which it may change.
type Attach func(req *http.Request, secret string)

// Bearer sets "Authorization: Bearer SECRET".
func Bearer(req *http.Request, secret string) {
	req.Header.Set("Authorization", BearerPrefix+secret)
}

const BearerPrefix = "Bearer "

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
