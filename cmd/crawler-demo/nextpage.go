package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A follower is the path of the next page's URL in a JSON body, or inLinkHeader. The empty follower finds none.
type follower []string

func parseFollower(s string) (follower, error) {
	path := strings.Split(s, ".")
	if slices.Contains(path, "") {
		return nil, errors.New("is wrong: write the path of a URL in a JSON body, such as paging.next, or Link for that header")
	}
	return path, nil
}

func (f follower) follows() bool { return len(f) > 0 }

// inHeader reports whether the header Link has the page's URL.
func (f follower) inHeader() bool { return len(f) == 1 && f[0] == inLinkHeader }

// next returns the URL of the page after the response that came from base, with these headers Link and this body; "" if there is none. What
// cannot be followed is an error, which does not repeat it.
func (f follower) next(base *url.URL, links []string, body []byte) (string, error) {
	if !f.follows() {
		return "", nil
	}
	find := func() (string, error) { return f.field(body) }
	if f.inHeader() {
		find = func() (string, error) { return nextLink(links) }
	}
	target, err := find()
	if err != nil {
		return "", err
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
	where := strings.Join(f, ".")
	if body = bytes.TrimSpace(body); len(body) > 0 && !json.Valid(body) {
		return "", fmt.Errorf("the body is not JSON, so -follow %s finds no next page", where)
	}
	var at any
	_ = json.Unmarshal(body, &at) // it is valid, or empty
	for _, step := range f {
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
