// Package jsonprefix parses the beginning of a JSON text, which may end anywhere: the result
// has what stands before the end, or before the first syntax error.
//
// Unlike a map it keeps the order of an object's members, and members of the same name: Meta
// documents a usage header that has one object twice.
package jsonprefix

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Bounds. A text that exceeds them is read as if it ended there.
const (
	deepest = 32
	most    = 50_000 // values
)

// A Kind is the type of a value.
type Kind uint8

// The kinds of values. None is a value that is not there.
const (
	None Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// A Value is a JSON value.
type Value struct {
	// Kind is what it is; the fields that do not belong to the kind are zero.
	Kind Kind
	// Text is a string, or a number or a boolean as it was written.
	Text string
	// Members are the members of an object, or the values of an array, without names.
	Members []Member
}

// A Member is a member of an object, or a value of an array.
type Member struct {
	Name  string // empty in an array
	Value Value  // None if the text ends before it
}

// Parse reads the value that a text begins with, behind its byte order mark if it has one.
func Parse(text []byte) Value {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	decoder.UseNumber()
	left := most
	value, _ := parse(decoder, 0, &left)
	return value
}

// parse returns a value, and whether it is complete. At most left values are read.
func parse(decoder *json.Decoder, depth int, left *int) (Value, bool) {
	token, err := decoder.Token()
	if *left--; err != nil || *left < 0 {
		return Value{}, false
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == deepest {
			return Value{}, false
		}
		if token == '[' || token == '{' {
			return parseMembers(decoder, token, depth, left)
		}
		return Value{}, false
	case string:
		return Value{Kind: String, Text: token}, true
	case json.Number:
		return Value{Kind: Number, Text: token.String()}, true
	case bool:
		if token {
			return Value{Kind: Bool, Text: "true"}, true
		}
		return Value{Kind: Bool, Text: "false"}, true
	}
	return Value{Kind: Null}, true
}

func parseMembers(decoder *json.Decoder, open json.Delim, depth int, left *int) (Value, bool) {
	value := Value{Kind: Array}
	if open == '{' {
		value.Kind = Object
	}
	for decoder.More() {
		var member Member
		if value.Kind == Object {
			token, err := decoder.Token()
			if err != nil {
				return value, false
			}
			member.Name, _ = token.(string)
		}
		var complete bool
		member.Value, complete = parse(decoder, depth+1, left)
		if member.Value.Kind != None {
			value.Members = append(value.Members, member)
		}
		if !complete {
			return value, false
		}
	}
	_, err := decoder.Token()
	return value, err == nil
}

// All returns the values at a path, or at several with "|" between, in the order of the
// paths. A path has names with dots between: "[]" behind a name, or in place of one, is each
// value of an array, and "*" each member of an object. "errors[].extensions.code" may have
// several values. A name is found in any case.
func (v Value) All(paths string) []Value {
	var all, values, next []Value
	for path := range strings.SplitSeq(paths, "|") {
		values = append(values[:0], v)
		for step := range strings.SplitSeq(path, ".") {
			name, each := strings.CutSuffix(step, "[]")
			next = next[:0]
			for _, value := range values {
				if name == "" {
					next = value.appendTo(next, each)
					continue
				}
				if value.Kind != Object {
					continue
				}
				for _, member := range value.Members {
					if name == "*" || strings.EqualFold(member.Name, name) {
						next = member.Value.appendTo(next, each)
					}
				}
			}
			values, next = next, values
		}
		all = append(all, values...)
	}
	return all
}

// appendTo appends the value, or each value of an array.
func (v Value) appendTo(values []Value, each bool) []Value {
	if !each {
		return append(values, v)
	}
	if v.Kind == Array {
		for _, member := range v.Members {
			values = append(values, member.Value)
		}
	}
	return values
}

// At returns the first value at a path, of [Kind] None if there is none.
func (v Value) At(path string) Value {
	for _, value := range v.All(path) {
		return value
	}
	return Value{}
}

// Strings appends the strings of the value and of all that it has, with a line break behind each, up to so many bytes.
func (v Value) Strings(to []byte, most int) []byte {
	if v.Kind == String && len(to)+len(v.Text) < most {
		to = append(append(to, v.Text...), '\n')
	}
	for _, member := range v.Members {
		to = member.Value.Strings(to, most)
	}
	return to
}
