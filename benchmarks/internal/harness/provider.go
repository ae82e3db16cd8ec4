package harness

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Get sends a request and reads its response to the end, so that the connection
// is used again. send is an http.Client's Do or a RoundTripper's RoundTrip.
func Get(ctx context.Context, url string, send func(*http.Request) (*http.Response, error)) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := send(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// Bearer attaches a token to each request and does nothing else.
type Bearer struct {
	*http.Transport
	Token string
}

// RoundTrip implements http.RoundTripper.
func (b Bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.Token)
	return b.Transport.RoundTrip(request)
}

// Allowed returns how many calls an exact sliding window lets through in a time that
// includes both of its ends: limit at its beginning and at the beginning of every
// further window.
func Allowed(limit int, window, length time.Duration) int {
	return limit * (int(length/window) + 1)
}

// Jain is Jain's index of fairness: the square of the sum over n times the sum of the
// squares. It is 1 if all have the same share, 1/n if one has all, and 0 if nobody has
// any.
func Jain(shares []int) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range shares {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Sleep returns the context's error if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
