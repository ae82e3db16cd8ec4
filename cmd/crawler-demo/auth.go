package main

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// An auth is how a token is attached.
type auth struct {
	Kind string `json:"kind,omitempty"` // "query", "header", "provider", as that of the name has it; "": bearer
	Name string `json:"name,omitempty"`
}

var headerName = regexp.MustCompile("^" + tokenPattern + "$")

func parseAuth(s string) (auth, error) {
	kind, name, named := strings.Cut(s, ":")
	switch {
	case s == "bearer":
		return auth{}, nil
	case kind == "query" && named && name != "" && !strings.ContainsAny(name, " \t\r\n"):
		return auth{kind, name}, nil
	case kind == "header" && named && headerName.MatchString(name):
		return auth{kind, name}, nil
	}
	return auth{}, errors.New("is wrong: write bearer, query:NAME or header:NAME")
}

func (a auth) attach() provider.Attach {
	switch a.Kind {
	case "provider":
		if p, err := presets.Named(a.Name); err == nil && p.Attach != nil {
			return p.Attach
		}
	case "query":
		return provider.QueryNamed(a.Name)
	case "header":
		return provider.HeaderNamed(a.Name)
	}
	return provider.Bearer
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
