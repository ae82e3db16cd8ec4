package jsonprefix_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/jsonprefix"
)

func TestAllFollowsAPath(t *testing.T) {
	v := jsonprefix.Parse([]byte(`{"error":{"code":17,"errors":[{"reason":"a"},{"reason":"b"},{}]},"list":[["x","y"],["z"]],"null":null}`))
	for path, want := range map[string]string{
		"error.code":                   "17",
		"error.errors[].reason":        "a b",
		"error.*.reason":               "",
		"list[].[]":                    "x y z",
		"error.code.more":              "",
		"error[]":                      "",
		"":                             "",
		"null":                         "",
		"nothing":                      "",
		"error.errors[].reason[]":      "",
		"nothing|list[].[]|error.code": "x y z 17",
	} {
		var texts []string
		for _, value := range v.All(path) {
			if value.Kind == jsonprefix.String || value.Kind == jsonprefix.Number {
				texts = append(texts, value.Text)
			}
		}
		require.Equal(t, want, strings.Join(texts, " "), path)
	}
	require.Equal(t, "b", jsonprefix.Parse([]byte(`[{"a":"b"}]`)).At("[].a").Text)
}

func TestParseKeepsMembersThatAreThereTwice(t *testing.T) {
	require.Len(t, jsonprefix.Parse([]byte(`{"1":[1],"1":[2]}`)).All("1[]"), 2)
}

// A text that ends early, or has a fault, has what stands before that.
func TestParseReadsWhatIsThere(t *testing.T) {
	for text, want := range map[string]string{
		`{"code":"a","rest":{"b":[1,2`: "a",
		`{"code":"a","rest`:            "a",
		`{"code":"a",,}`:               "a",
		`{"code":"a`:                   "",
		`{"rest":` + strings.Repeat("[", 100_000) + `,"code":"a"}`:    "",
		`{"code":"a","rest":` + strings.Repeat("[", 100_000):          "a",
		`{"code":"a","rest":[` + strings.Repeat("1,", 60_000) + `1]}`: "a",
		`{"rest":[` + strings.Repeat("1,", 60_000) + `1],"code":"a"}`: "",
		"{\"code\":\"\xff\"}": "\ufffd",
		"":                    "",
		"]":                   "",
	} {
		require.Equal(t, want, jsonprefix.Parse([]byte(text)).At("code").Text, "%.40s", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"error":{"code":17,"errors":[{"reason":"a"}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v := jsonprefix.Parse(text)
		require.Equal(t, v, jsonprefix.Parse(text))
		_ = v.All("error.errors[].*.[]")
	})
}
