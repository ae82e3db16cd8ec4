package dashboard

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"github.com/ration-go/ration/internal/hosts"
)

// admits reports whether to answer a request. If not, it has answered. Nothing but /healthz is exempt: the
// assets and the streams are behind the same door.
func (h *Handler) admits(w http.ResponseWriter, r *http.Request) bool {
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin") // without any, a browser would not say whose a form is
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	switch {
	case !h.isOurs(r.Host):
		http.Error(w, "ration: this page is not asked for by that name; Handler.Hosts, or ration serve -host, allows one", http.StatusMisdirectedRequest)
	case isForeign(r):
		http.Error(w, "ration: another site has asked for this", http.StatusForbidden)
	case h.Authorize != nil:
		if h.Authorize(r) {
			return true
		}
		http.Error(w, "ration: you may not look at this", http.StatusForbidden)
	case h.Password != "":
		_, given, _ := r.BasicAuth()
		if isEqual(given, h.Password) {
			return true
		}
		header.Set("WWW-Authenticate", `Basic realm="ration", charset="UTF-8"`)
		http.Error(w, "ration: a password is needed", http.StatusUnauthorized)
	case hosts.IsLocal(r.RemoteAddr):
		return true
	default:
		http.Error(w, "ration: without a password the page answers its own machine only: set Handler.Password or Authorize, or ration serve -password-file", http.StatusForbidden)
	}
	return false
}

// isOurs reports whether the page may be asked for by that name.
func (h *Handler) isOurs(host string) bool {
	u := url.URL{Scheme: "http", Host: host}
	return hosts.IsLocal(host) || hosts.Has(h.Hosts, &u)
}

// isForeign reports whether another site has had a browser make the request. A link that somebody follows
// to the page is no such request.
func isForeign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	followed := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !followed
}

// isEqual compares in a time that tells nothing of where two texts differ, or of their lengths.
func isEqual(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
