package simulated

import (
	"fmt"
	"math"
	"net/http"
	"time"
)

// shopifyDialect is that of Shopify's REST API: a bucket of 40 that leaks 2 a second. Answers have what is used and the
// bucket's size. Retry-After has a fraction.
type shopifyDialect struct{}

func (shopifyDialect) Name() string { return "shopify" }
func (shopifyDialect) usual() usual { return usual{CountGCRA, 40, 20 * time.Second} }

func (shopifyDialect) token(r *http.Request) string { return r.Header.Get("X-Shopify-Access-Token") }

func (shopifyDialect) setHeaders(h http.Header, s quotaState) {
	h.Set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%d/%d", s.used(), s.most))
}

func (shopifyDialect) fail(h http.Header, s quotaState) (status int, body any) {
	switch s.why {
	case KindDead:
		return shopifyError(http.StatusUnauthorized, "[API] Invalid API key or access token (unrecognized login or wrong password)")
	case missing:
		return shopifyError(http.StatusNotFound, "Not Found")
	case KindApp: // an address that is kept out
		return shopifyError(430, "Shopify Security Rejection")
	}
	// Shopify sends 2.0 although a call would be accepted after half a second.
	const least = 2
	h.Set("Retry-After", fmt.Sprintf("%.1f", max(least, math.Ceil(s.next.Seconds()))))
	return shopifyError(http.StatusTooManyRequests, fmt.Sprintf("Exceeded %.4g calls per second for api client. "+
		"Reduce request rates to resume uninterrupted service.", float64(s.limit)/s.window.Seconds()))
}

func shopifyError(status int, errors string) (int, any) {
	return status, struct {
		Errors string `json:"errors"`
	}{errors}
}
