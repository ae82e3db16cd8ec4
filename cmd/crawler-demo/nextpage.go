package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A follower finds the page that comes after a response. The zero follower
// finds none.
type follower struct {
	Kind string   `json:"kind,omitempty"` // "link", "json"; "": none
	Path []string `json:"path,omitempty"` // of the URL in a JSON body
}

func parseFollower(s string) (follower, error) {
	if s == "link" {
		return follower{Kind: "link"}, nil
	}
	path, found := strings.CutPrefix(s, "json:")
	steps := strings.Split(path, ".")
	for _, step := range steps {
		found = found && step != ""
	}
	if !found {
		return follower{}, errors.New("is wrong: write link, or json:PATH such as json:paging.next")
	}
	return follower{Kind: "json", Path: steps}, nil
}

func (f follower) follows() bool { return f.Kind != "" }

// next returns the URL of the page after the response that came from base, with
// these Link headers and this body; "" if there is none. What cannot be followed
// is an error, which does not repeat it.
func (f follower) next(base *url.URL, links []string, body []byte) (string, error) {
	var target string
	switch f.Kind {
	case "link":
		target = nextLink(links)
	case "json":
		var err error
		if target, err = f.field(body); err != nil {
			return "", err
		}
	}
	if target == "" {
		return "", nil
	}
	relative, err := url.Parse(target)
	if err != nil {
		return "", errors.New("the next page has a malformed URL")
	}
	next := base.ResolveReference(relative)
	if _, err := parseURL(next.String()); err != nil {
		return "", fmt.Errorf("the next page: %w", err)
	}
	return next.String(), nil
}

// field returns the string at the path. Nothing there, null and false are the
// end of the pages; anything else cannot be followed.
func (f follower) field(body []byte) (string, error) {
	where := "json:" + strings.Join(f.Path, ".")
	if body = bytes.TrimSpace(body); len(body) > 0 && !json.Valid(body) {
		return "", fmt.Errorf("the body is not JSON, so -follow %s finds no next page", where)
	}
	var at any
	_ = json.Unmarshal(body, &at) // it is valid, or empty
	for _, step := range f.Path {
		switch of := at.(type) {
		case map[string]any:
			at = of[step]
		case []any:
			at = nil
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(of) {
				at = of[i]
			}
		default:
			at = nil
		}
	}
	target, isString := at.(string)
	if !isString && at != nil && at != false {
		return "", fmt.Errorf("-follow %s finds no string there", where)
	}
	return target, nil
}
