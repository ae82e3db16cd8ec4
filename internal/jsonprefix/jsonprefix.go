// Package jsonprefix reads the beginning of a JSON text, which may end anywhere:
// what stands before the end, or before the first fault, is what there is.
//
// Unlike a map it keeps the members of an object in order and those that are there
// twice: Meta's own sample of a usage header names one object two times.
package jsonprefix

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Bounds of what is looked at. A text beyond them is one whose rest is missing.
const (
	deepest = 32
	most    = 50_000 // values
)

// A Kind is what a value is.
type Kind uint8

// The kinds of values. None is what was not there.
const (
	None Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// A Value is one value of the text.
type Value struct {
	Kind Kind
	// Text is a string, or a number or a boolean as it was written.
	Text string
	// Members are those of an object or an array, which have no names.
	Members []Member
}

// A Member is a value in an object, by its name, or in an array.
type Member struct {
	Name  string
	Value Value
}

// Parse reads the value that a text begins with, behind its byte order mark if it has one.
func Parse(text []byte) Value {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	decoder.UseNumber()
	left := most
	value, _ := parse(decoder, 0, &left)
	return value
}

// parse returns a value, and whether it was there to its end.
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
		var whole bool
		member.Value, whole = parse(decoder, depth+1, left)
		if member.Value.Kind != None {
			value.Members = append(value.Members, member)
		}
		if !whole {
			return value, false
		}
	}
	_, err := decoder.Token()
	return value, err == nil
}

// All returns the values at a path: names with dots between, "[]" behind a name or
// in place of one for each value of an array, and "*" for each member of an object.
// "errors[].extensions.code" may be there several times.
func (v Value) All(path string) []Value {
	values := []Value{v}
	for step := range strings.SplitSeq(path, ".") {
		name, each := strings.CutSuffix(step, "[]")
		var next []Value
		for _, value := range values {
			next = value.step(next, name, each)
		}
		if values = next; len(values) == 0 {
			return nil
		}
	}
	return values
}

func (v Value) step(next []Value, name string, each bool) []Value {
	from := []Member{{Value: v}}
	if name != "" {
		from = nil
		for _, member := range v.Members {
			if v.Kind == Object && (name == "*" || member.Name == name) {
				from = append(from, member)
			}
		}
	}
	for _, member := range from {
		if !each {
			next = append(next, member.Value)
			continue
		}
		if member.Value.Kind == Array {
			for _, inner := range member.Value.Members {
				next = append(next, inner.Value)
			}
		}
	}
	return next
}

// At returns the first value at a path, of [Kind] None if there is none.
func (v Value) At(path string) Value {
	for _, value := range v.All(path) {
		return value
	}
	return Value{}
}
