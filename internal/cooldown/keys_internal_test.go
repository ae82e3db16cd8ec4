package cooldown

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newRequest(t *testing.T, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	return req
}

func TestEndpointLeavesTheObjectOpen(t *testing.T) {
	for _, row := range []struct {
		one, other string // METHOD URL
		same       bool
	}{
		{"GET http://api.test/users/17/media", "GET http://api.test/users/18/media", true},
		{"GET http://api.test/users/17/media", "GET http://API.test/users/18/media?after=x", true},
		{"GET http://api.test/users/17", "POST http://api.test/users/17", false},
		{"GET http://api.test/users/17", "GET http://other.test/users/17", false},
		{"GET http://api.test/users/17/media", "GET http://api.test/users/17/likes", false},
		{"GET http://api.test/users/17", "GET http://api.test/users", false},
		{"GET http://api.test/users/anna", "GET http://api.test/users/otto", false},
		{"GET http://api.test/v1/users", "GET http://api.test/v2/users", false},
		{"GET http://api.test/o/6f9619ff-8b86-d011-b42d-00c04fc964ff", "GET http://api.test/o/00000000-8b86-d011-b42d-00c04fc964ff", true},
		{"GET http://api.test/o/sub_1MowQVLkdIwHu7ix", "GET http://api.test/o/sub_9MowQVLkdIwHu7ix", true},
	} {
		both := make([]Key, 2)
		for i, text := range []string{row.one, row.other} {
			method, url, _ := strings.Cut(text, " ")
			both[i] = EndpointKey(newRequest(t, method, url))
		}
		require.Equal(t, row.same, both[0] == both[1], "%s and %s", row.one, row.other)
	}
	req := newRequest(t, "", "http://api.test/")
	req.Method = ""
	require.Equal(t, EndpointKey(newRequest(t, "GET", "http://api.test/")), EndpointKey(req))
}

func TestIsObjectID(t *testing.T) {
	for part, want := range map[string]bool{
		"17": true, "17841400000000001": true, "6f9619ff-8b86-d011-b42d-00c04fc964ff": true, "sub_1MowQVLkdIwHu7ix": true,
		"a1b2c3d4e5f6": true, "a1b2c3d4e5f": false, "": false, "v1": false, "users": false, "oauth2": false,
		"notification-settings": false, "file.json": false, "12:34": false, "1.5": false, "ß17": false, "12345678901 ": false,
	} {
		require.Equal(t, want, isObjectID(part), "%q", part)
	}
}

// What a pause is about is found again in each request that it concerns, and no other.
func TestKeysOfARequest(t *testing.T) {
	refused := newRequest(t, "GET", "http://api.test/v1/users/17/media")
	for _, row := range []struct {
		request string
		scopes  []string
		about   Key
		want    bool
	}{
		{"http://api.test/v1/users/18/media", nil, EndpointKey(refused), true},
		{"http://api.test/v1/users/18/likes", nil, EndpointKey(refused), false},
		{"http://api.test/v1/users/17/media?page=2", nil, objectKey(refused), true},
		{"http://api.test/v1/users/18/media", nil, objectKey(refused), false},
		{"http://api.test/v1/users/17/likes", nil, pathPartKey(refused, "17"), true},
		{"http://api.test/v1/users/170/likes", nil, pathPartKey(refused, "17"), false},
		{"http://other.test/v1/users/17", nil, pathPartKey(refused, "17"), false},
		{"http://api.test/anything", []string{"read", "search"}, scopeKey("search"), true},
		{"http://api.test/search", []string{"read"}, scopeKey("search"), false},
	} {
		require.Equal(t, row.want, slices.Contains(KeysOf(newRequest(t, "GET", row.request), row.scopes), row.about), row.request)
	}
}

func TestExcludedAccountsAndUntilWhen(t *testing.T) {
	const users, tags Key = "users", "tags"
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	n := KeyPauses{
		users: {"a": at(10), "b": at(5), "c": at(-1), "d": at(0)},
		tags:  {"": at(7), "a": at(20)},
	}
	barred, free, all := n.Excluded([]Key{users}, noon)
	require.ElementsMatch(t, []string{"a", "b"}, barred, "a pause that is over bars nobody")
	require.Equal(t, at(5), free)
	require.Zero(t, all)
	_, _, all = n.Excluded([]Key{tags, users}, noon)
	require.Equal(t, at(7), all)
	barred, free, all = n.Excluded([]Key{"other"}, noon)
	require.Empty(t, barred)
	require.Zero(t, free)
	require.Zero(t, all)
}

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
