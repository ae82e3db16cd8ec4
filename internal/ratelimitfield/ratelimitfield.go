// Package ratelimitfield reads the fields of the IETF's RateLimit drafts
// (draft-ietf-httpapi-ratelimit-headers), in the forms of all drafts:
//
//	RateLimit-Limit: 10, 10;w=1, 50;w=60                  drafts 1 to 3
//	RateLimit-Policy: 10;w=1, 50;w=60                     drafts 4 to 7
//	RateLimit: limit=100, remaining=50, reset=5           draft 7
//	RateLimit: "default";r=50;t=30                        drafts 8 to 10
//	RateLimit-Policy: "default";q=100;w=10                drafts 8 to 10
//
// It accepts what servers are known to send: a name may be a token instead of a string, r
// may be missing, and a number may have a fraction. It ignores a field that is malformed,
// as the drafts require, or longer than 8 KiB.
package ratelimitfield

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/dunglas/httpsfv"
)

// A Number is a number that a field may not have. Its zero value is unknown.
type Number struct {
	Value float64 // zero unless Known
	Known bool    // false: the field has no such parameter
}

// An Item is a policy, or the state of one. What the field does not have is zero.
type Item struct {
	Name      string // of the policy
	Quota     Number // q, limit, or the bare number of the older drafts
	Remaining Number // r or remaining
	Reset     Number // t or reset, in seconds from now
	Window    Number // w, in seconds
	Unit      string // qu; empty: requests
	Partition string // pk, in base64
}

// longest is how many bytes a field may have.
const longest = 8 << 10

// described is a string before the name of a policy, which no draft has.
var described = regexp.MustCompile(`"[^"]*"\s*;\s*("[^"]*")`)

// tooLong reports whether the lines of a field are longer than that.
func tooLong(lines []string) bool {
	sum := 0
	for _, line := range lines {
		sum += len(line)
	}
	return sum > longest
}

// List reads RateLimit-Limit, RateLimit-Policy, and RateLimit as of drafts 8 to 10. The
// lines are those of one field. It returns nil if it ignores the field.
func List(lines []string) []Item {
	if len(lines) == 0 || tooLong(lines) {
		return nil
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		// Some put a description before the name of a policy: "fixed window";"api";q=500;w=300.
		list, err = httpsfv.UnmarshalList([]string{described.ReplaceAllString(strings.Join(lines, ", "), "$1")})
	}
	if err != nil {
		return nil
	}
	var items []Item
	for _, member := range list {
		item, single := member.(httpsfv.Item)
		if !single {
			continue
		}
		var read Item
		switch value := item.Value.(type) {
		case string:
			read.Name = value
		case httpsfv.Token:
			read.Name = string(value)
		default:
			if read.Quota = number(value); !read.Quota.Known {
				continue
			}
		}
		read.parameters(item.Params)
		items = append(items, read)
	}
	return items
}

// State reads RateLimit: the one item of draft 7, or the list of drafts 8 to 10. It returns
// nil if it ignores the field.
func State(lines []string) []Item {
	if len(lines) == 0 || tooLong(lines) {
		return nil
	}
	if !strings.Contains(lines[0], "limit=") && !strings.Contains(lines[0], "reset=") {
		return List(lines)
	}
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil
	}
	var read Item
	for key, into := range map[string]*Number{"limit": &read.Quota, "remaining": &read.Remaining, "reset": &read.Reset} {
		if member, found := dictionary.Get(key); found {
			if item, single := member.(httpsfv.Item); single {
				*into = number(item.Value)
			}
		}
	}
	if !read.Quota.Known && !read.Remaining.Known && !read.Reset.Known {
		return nil
	}
	return []Item{read}
}

func (i *Item) parameters(params *httpsfv.Params) {
	for _, one := range [...]struct {
		key  string
		into *Number
	}{{"q", &i.Quota}, {"r", &i.Remaining}, {"t", &i.Reset}, {"window", &i.Window}, {"w", &i.Window}} { // the last counts
		if value, found := params.Get(one.key); found {
			if n := number(value); n.Known {
				*one.into = n
			}
		}
	}
	if value, found := params.Get("qu"); found {
		switch unit := value.(type) {
		case string:
			i.Unit = unit
		case httpsfv.Token:
			i.Unit = string(unit)
		}
	}
	if value, found := params.Get("pk"); found {
		switch key := value.(type) {
		case []byte:
			i.Partition = base64.StdEncoding.EncodeToString(key)
		case string:
			i.Partition = key
		case httpsfv.Token:
			i.Partition = string(key)
		}
	}
	if i.Unit == "requests" {
		i.Unit = ""
	}
}

func number(value any) Number {
	switch n := value.(type) {
	case int64:
		return Number{float64(n), true}
	case float64:
		return Number{n, true}
	}
	return Number{}
}
