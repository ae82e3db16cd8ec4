package main

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/ration-go/ration/cmd/internal/attach"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// An auth is how a token is attached.
type auth struct {
	Kind string `json:"kind,omitempty"` // "query", "header", "provider", as that of the name has it; "": bearer
	Name string `json:"name,omitempty"`
}

func parseAuth(s string) (auth, error) {
	kind, name, ok := attach.Parse(s)
	if !ok {
		return auth{}, errors.New("is wrong: write bearer, query:NAME or header:NAME")
	}
	return auth{kind, name}, nil
}

func (a auth) attach() provider.Attach {
	if a.Kind == "provider" {
		if p, err := presets.Named(a.Name); err == nil && p.Attach != nil {
			return p.Attach
		}
	}
	return attach.As(a.Kind, a.Name)
}

// param is the query parameter that holds the secret; "" if none does.
func (a auth) param() string {
	req := &http.Request{URL: new(url.URL), Header: make(http.Header)}
	_ = a.attach()(req, "secret") // those that are here do not fail
	for name := range req.URL.Query() {
		return name
	}
	return ""
}
