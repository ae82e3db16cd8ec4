package rationtest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Respond makes a response. Header is NAME, VALUE, NAME, VALUE.
func Respond(req *http.Request, status int, body string, header []string) *http.Response {
	h := make(http.Header)
	for pair := range slices.Chunk(header, 2) {
		h.Add(pair[0], pair[1])
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

// A Reply is a response that is not yet bound to a request.
type Reply struct {
	Status int
	Body   string
	Header []string // NAME, VALUE, NAME, VALUE
}

// JSON is the header of a JSON body.
var JSON = []string{"Content-Type", "application/json"}

// Replies that several tests use.
var (
	Served          = Reply{Status: 200, Body: "{}", Header: JSON}
	InvalidToken    = Reply{401, `{"error":"invalid_token"}`, JSON}
	PaymentRequired = Reply{402, `{"error":"no credit"}`, JSON}
	Unauthorized    = Reply{Status: 401}
)

// To returns the response to a request.
func (r Reply) To(req *http.Request) *http.Response { return Respond(req, r.Status, r.Body, r.Header) }

// ByToken sends the reply that is listed for the request's token, and Served for any other token.
func ByToken(said map[string]Reply) func(int, *http.Request) (*http.Response, error) {
	return func(_ int, req *http.Request) (*http.Response, error) {
		if r, found := said[SecretOf(req)]; found {
			return r.To(req), nil
		}
		return Served.To(req), nil
	}
}

// SecretOf returns the bearer token of a request.
func SecretOf(req *http.Request) string { return req.Header.Get("Authorization")[len("Bearer "):] }

// Throttling answers the first requests with a 429 and the header NAME, VALUE, ..., and
// later ones with 200.
func Throttling(first int, header ...string) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		if n <= first {
			return Respond(req, http.StatusTooManyRequests, "slow down", header), nil
		}
		return Respond(req, http.StatusOK, "welcome", nil), nil
	}
}

// Announcing answers the n-th request with 200 and the header that the function returns.
func Announcing(header func(n int) []string) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		return Respond(req, http.StatusOK, "", header(n)), nil
	}
}

// InstagramHeader is the header in which Instagram announces its limit.
func InstagramHeader(limit, remaining int) []string {
	return []string{"X-Ratelimit-Limit", strconv.Itoa(limit), "X-Ratelimit-Remaining", strconv.Itoa(remaining)}
}

// ThrottlingOnce answers the first request with a status, a body and a header NAME,
// VALUE, ..., and later ones with 200.
func ThrottlingOnce(status int, body string, header ...string) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		if n == 1 {
			return Respond(req, status, body, header), nil
		}
		return Respond(req, http.StatusOK, "{}", []string{"Content-Type", "application/json"}), nil
	}
}

// Hanging never answers the first requests, and sends Served to later ones.
func Hanging(first int) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		if n <= first {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return Served.To(req), nil
	}
}

// Replying sends r to the first requests, and Served to later ones.
func Replying(first int, r Reply) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		if n <= first {
			return r.To(req), nil
		}
		return Served.To(req), nil
	}
}
