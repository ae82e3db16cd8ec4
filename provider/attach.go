package provider

import (
	"net/http"
	"net/url"
	"strings"
)

// An Attach puts a token's secret into a request, which is a copy that it may change. It may
// be called concurrently.
type Attach func(req *http.Request, secret string)

// Bearer sets "Authorization: Bearer SECRET".
func Bearer(req *http.Request, secret string) {
	req.Header.Set("Authorization", "Bearer "+secret)
}

// HeaderNamed returns an Attach that sets the header to the secret.
func HeaderNamed(name string) Attach {
	return func(req *http.Request, secret string) { req.Header.Set(name, secret) }
}

// QueryNamed returns an Attach that sets the query parameter to the secret, and leaves the
// others unchanged. Prefer a header if the provider takes one: proxies and servers log URLs.
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
