package rationtest

import (
	"io"
	"net/http"
	"strings"
)

// A Body is a body that counts how often it was closed.
type Body struct {
	io.Reader
	Closed int
}

// NewBody returns a body with this content.
func NewBody(s string) *Body { return &Body{Reader: strings.NewReader(s)} }

// Close counts the call.
func (b *Body) Close() error {
	b.Closed++
	return nil
}

// Bodies has a GetBody, Get, and keeps what it returned.
type Bodies struct {
	Content string
	Made    []*Body // what Get returned
	Err     error   // what Get fails with; nil: it does not fail
}

// Get is a request's GetBody.
func (b *Bodies) Get() (io.ReadCloser, error) {
	if b.Err != nil {
		return nil, b.Err
	}
	made := NewBody(b.Content)
	b.Made = append(b.Made, made)
	return made, nil
}

// KeepBodies gives each response of answer a Body, and appends it to of.
func KeepBodies(of *[]*Body, answer func(int, *http.Request) (*http.Response, error)) func(int, *http.Request) (*http.Response, error) {
	return func(n int, req *http.Request) (*http.Response, error) {
		resp, err := answer(n, req)
		if err == nil {
			content, _ := io.ReadAll(resp.Body)
			kept := NewBody(string(content))
			*of, resp.Body = append(*of, kept), kept
		}
		return resp, err
	}
}
