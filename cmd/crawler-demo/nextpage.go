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
	at := json.RawMessage(bytes.TrimSpace(body))
	if len(at) > 0 && !json.Valid(at) {
		return "", fmt.Errorf("the body is not JSON, so -follow %s finds no next page", where)
	}
	for _, step := range f.Path {
		at = child(at, step)
	}
	if s := string(at); s == "" || s == "null" || s == "false" {
		return "", nil
	}
	var target string
	if err := json.Unmarshal(at, &target); err != nil {
		return "", fmt.Errorf("-follow %s finds no string there", where)
	}
	return target, nil
}

// child returns a member of a valid JSON object or array; nil if there is none.
func child(of json.RawMessage, name string) json.RawMessage {
	switch {
	case len(of) > 0 && of[0] == '{':
		var object map[string]json.RawMessage
		_ = json.Unmarshal(of, &object) // it is valid
		return object[name]
	case len(of) > 0 && of[0] == '[':
		var array []json.RawMessage
		_ = json.Unmarshal(of, &array)
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(array) {
			return array[i]
		}
	}
	return nil
}
