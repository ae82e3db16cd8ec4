package cooldown

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
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
	require.Regexp(t, "^endpoint[0-9a-f]{16}$", string(EndpointKey(req)))
	require.Regexp(t, "^object[0-9a-f]{16}$", string(objectKey(req)))
	require.Regexp(t, "^part[0-9a-f]{16}$", string(pathPartKey(req, "17")))
	require.Regexp(t, "^scope[0-9a-f]{16}$", string(scopeKey("media")))
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
	var n KeyPauses
	require.False(t, n.Any.Load())
	for _, one := range []struct {
		key     Key
		account string
		until   int
	}{{users, "a", 10}, {users, "a", 3}, {users, "b", 5}, {users, "c", -1}, {users, "d", 0}, {tags, "", 7}, {tags, "a", 20}} {
		n.Lengthen(one.key, one.account, Pause{Until: at(one.until), Kind: store.PauseSpent}, at(-2))
	}
	require.True(t, n.Any.Load())
	excluded, free, all := n.Excluded([]Key{users}, noon)
	require.ElementsMatch(t, []string{"a", "b"}, excluded, "a pause that is over excludes nobody")
	require.Equal(t, at(5), free.Until)
	require.Zero(t, all)
	_, _, all = n.Excluded([]Key{tags, users}, noon)
	require.Equal(t, at(7), all.Until)
	excluded, free, all = n.Excluded([]Key{"other"}, noon)
	require.Empty(t, excluded)
	require.Zero(t, free)
	require.Zero(t, all)
	require.True(t, n.Any.Load())
	excluded, _, _ = n.Excluded([]Key{users}, at(20))
	require.Empty(t, excluded)
	require.False(t, n.Any.Load(), "the last pause is over")
}

// Pauses that have ended leave nothing behind, though others are in force.
func TestPausesThatHaveEndedAreForgotten(t *testing.T) {
	var n KeyPauses
	n.Lengthen("long", "", Pause{Until: noon.Add(24 * time.Hour), Kind: store.PauseSpent}, noon)
	for i := range 1000 {
		now := noon.Add(time.Duration(i) * time.Minute)
		n.Lengthen(Key(strconv.Itoa(i)), "a", Pause{Until: now.Add(10 * time.Minute), Kind: store.PauseSpent}, now)
		n.Lengthen("users", strconv.Itoa(i), Pause{Until: now.Add(10 * time.Minute), Kind: store.PauseSpent}, now)
		require.LessOrEqual(t, n.ends.Len(), 60)
		require.LessOrEqual(t, len(n.keys), 60)
		require.LessOrEqual(t, len(n.keys["users"]), 60)
	}
	_, _, all := n.Excluded([]Key{"long"}, noon)
	require.Equal(t, noon.Add(24*time.Hour), all.Until)
}

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// Of a route with two IDs a bucket is of the first: of a channel, and not of a message in it.
func TestABucketIsOfTheFirstObject(t *testing.T) {
	of := func(path string) []Key { return KeysOf(newRequest(t, "GET", "http://api.test"+path), nil) }
	bucket := bucketKey(newRequest(t, "GET", "http://api.test/channels/100000000000000001/messages/5"))
	require.Contains(t, of("/channels/100000000000000001/messages/6"), bucket)
	require.NotContains(t, of("/channels/200000000000000002/messages/5"), bucket)
}

func TestTargetOfAScope(t *testing.T) {
	req := newRequest(t, "GET", "http://api.test/v1/17841400000000001/media")
	endpoint, object := EndpointKey(req), objectKey(req)
	app := []Shared{{ID: "the-app", Scope: provider.ScopeApp}, {ID: "the-address", Scope: provider.ScopeIP}, {ID: "other"}}
	for _, row := range []struct {
		scope  provider.Scope
		object string
		scopes []string
		shared []Shared
		want   Target
	}{
		{scope: "", want: Target{Account: true}},
		{scope: "token", want: Target{Account: true}},
		{scope: "user+core", want: Target{Account: true}},
		{scope: "installation", want: Target{Account: true}},
		{scope: "app", want: Target{}},
		{scope: "project", want: Target{}},
		{scope: "ip", want: Target{}},
		{scope: "app+user", want: Target{}},
		{scope: "app", shared: app, want: Target{Shared: []string{"the-app"}}},
		{scope: "ip", shared: app, want: Target{Shared: []string{"the-address"}}},
		{scope: "project", shared: app, want: Target{}},
		{scope: "token", shared: app, want: Target{Account: true}},
		{scope: "endpoint", want: Target{Keys: []Key{endpoint}}},
		{scope: "endpoint+method", want: Target{Keys: []Key{endpoint}}},
		{scope: "bucket", object: "abc", want: Target{Keys: []Key{bucketKey(req)}}},
		{scope: "user+dependency_sbom", scopes: []string{"core"}, want: Target{Account: true, Keys: []Key{endpoint}}},
		{scope: "user+endpoint", want: Target{Account: true, Keys: []Key{endpoint}}},
		{scope: "app+endpoint", want: Target{Keys: []Key{endpoint}}},
		{scope: "app+endpoint", shared: app, want: Target{Keys: []Key{endpoint}}},
		{scope: "user+search", scopes: []string{"search", "read"}, want: Target{Account: true, Keys: []Key{scopeKey("search")}}},
		{scope: "user+endpoint", scopes: []string{"read"}, want: Target{Account: true, Keys: []Key{scopeKey("read")}}},
		{scope: "object", want: Target{Keys: []Key{object}}},
		{scope: "resource", want: Target{Keys: []Key{object}}},
		{scope: "object", object: "17841400000000001", want: Target{Keys: []Key{pathPartKey(req, "17841400000000001")}}},
		{scope: "object", object: "178", want: Target{Keys: []Key{object}}},
		{scope: "user+object", want: Target{Account: true, Keys: []Key{object}}},
	} {
		require.Equal(t, row.want, TargetOf(row.scope, req, row.object, row.scopes, row.shared), "%+v", row)
	}
}

func TestScopeOfAResponse(t *testing.T) {
	spent := func(w provider.Window) *provider.Feedback {
		w.Remaining = provider.Some(int64(0))
		return &provider.Feedback{Windows: []provider.Window{w}}
	}
	left := provider.Window{Name: "search", Remaining: provider.Some(int64(5))}
	for _, row := range []struct {
		f         *provider.Feedback
		byDefault provider.Scope
		want      provider.Scope
	}{
		{&provider.Feedback{}, "", ""},
		{&provider.Feedback{}, "user", "user"},
		{&provider.Feedback{Scope: "app"}, "user", "app"},
		{&provider.Feedback{Scope: "app", Windows: spent(provider.Window{Scope: "user"}).Windows}, "ip", "app"},
		{&provider.Feedback{Windows: []provider.Window{left}}, "user", "user"},
		{spent(provider.Window{Scope: "app"}), "user", "app"},
		{spent(provider.Window{Scope: "user+endpoint"}), "app", "user+endpoint"},
		{spent(provider.Window{Scope: "bucket"}), "token", "token+bucket"},
		{spent(provider.Window{Scope: "bucket"}), "", "bucket"},
		{spent(provider.Window{Name: "search"}), "user", "user+search"},
		{spent(provider.Window{Name: "search"}), "", "search"},
		{spent(provider.Window{Name: "core"}), "user", "user"},
		{spent(provider.Window{Name: "15min", Length: provider.Some(15 * time.Minute)}), "user+endpoint", "user+endpoint"},
	} {
		require.Equal(t, row.want, ScopeOf(row.f, row.byDefault, false), "%+v by %q", row.f, row.byDefault)
	}
	secondary := &provider.Feedback{Reason: provider.ReasonSecondary}
	require.Equal(t, provider.ScopeAccount, ScopeOf(secondary, "ip", false))
	require.Equal(t, provider.Scope("app+ip"), ScopeOf(secondary, "user", true))
	secondary.Scope = "user"
	require.Equal(t, provider.ScopeUser, ScopeOf(secondary, "ip", true))
}

func TestASecondAccountIsRefused(t *testing.T) {
	var s Secondary
	at := time.UnixMicro(1_795_000_000_000_000)
	require.False(t, s.Refused("a", at))
	require.False(t, s.Refused("a", at.Add(time.Second)))
	require.False(t, s.Refused("b", at.Add(62*time.Second)))
	require.True(t, s.Refused("a", at.Add(122*time.Second)))
}

// Of a part the fleet's callers leave by the slow start, whichever process they are in: of each step twice as many as of the one before.
func TestCallersOfAPartLeaveBySlowStart(t *testing.T) {
	const step = 10 * time.Second
	for _, processes := range []int{1, 2, 6, 40} {
		left := make([]int, 10) // in each step, of a hundred fleets
		for range 100 {
			for range processes {
				var p KeyPauses
				p.Lengthen("users", "", Pause{Until: noon, SlowStart: step}, noon.Add(-time.Second))
				p.Replace(Pause{Key: "users", Until: noon, SlowStart: step, Kind: store.PauseServed})
				for {
					n := int(p.Release([]Key{"users"}, "", processes, noon).Sub(noon) / step)
					if n >= len(left) {
						break
					}
					left[n]++
				}
			}
		}
		require.LessOrEqual(t, left[0], 150, "the probe, which is gone, is most of the first step")
		for n, of := range left[1:] {
			n++
			require.InDelta(t, 100<<n, of, float64(40+int(10)<<n), "%d processes, step %d: %v", processes, n, left)
		}
	}
	var p KeyPauses
	p.Lengthen("users", "", Pause{Until: noon, SlowStart: step}, noon.Add(-time.Second))
	require.True(t, p.Release([]Key{"users"}, "", 1, noon).IsZero(), "nobody has probed")
	p.Replace(Pause{Key: "users", Until: noon, SlowStart: step, Kind: store.PauseServed})
	late := noon.Add(5 * step)
	require.False(t, p.Release([]Key{"users"}, "", 1, late).After(late))
	require.InDelta(t, 0.44, p.Release([]Key{"users"}, "", 1, late).Sub(late).Seconds(), 0.01, "one of 32 a step")
	require.True(t, p.Release([]Key{"users"}, "", 1, noon.Add(time.Hour)).IsZero(), "it is over")
}

// How long an unknown wait is, and how fast what stands behind it may leave.
func TestCooldownsGrow(t *testing.T) {
	for row := range 30 {
		length := Unknown(row, 0, time.Hour)
		least := min(time.Hour, time.Second<<min(row, 20))
		require.GreaterOrEqual(t, length, least)
		require.LessOrEqual(t, length, min(time.Hour, least+least/4))
	}
	require.GreaterOrEqual(t, Unknown(2, time.Minute, time.Hour), 4*time.Minute)
	require.Equal(t, time.Hour, Unknown(17, 24*time.Hour, time.Hour), "no overflow")
	require.Equal(t, time.Hour, Unknown(100, 0, time.Hour))
	require.Equal(t, 100*time.Millisecond, Step(time.Second, 10*time.Millisecond))
	require.Equal(t, time.Second, Step(time.Second, 500*time.Millisecond))
	require.Equal(t, 10*time.Minute/32, Step(10*time.Minute, 0))
	require.Equal(t, 30*time.Second, Step(time.Hour, 0))

	p := Pause{Until: noon, SlowStart: time.Second, Row: 5}
	require.Equal(t, 5, p.InRow(noon.Add(12*time.Second)))
	require.Zero(t, p.InRow(noon.Add(12*time.Second+1)))
	p.Kind = store.PauseServed
	require.Equal(t, 3, p.InRow(noon))
	require.Zero(t, Pause{}.InRow(noon))
}

// What refusals are about that do not say it, by what was refused and served.
func TestEvidence(t *testing.T) {
	type seen struct {
		key     Key
		account string
		sent    int // seconds
		served  bool
		want    string // "", of a refusal the account; "endpoint", "all"; of a success the accounts that go on but for an endpoint
	}
	for name, history := range map[string][]seen{
		"nothing else was asked":                     {{"a", "1", 0, false, ""}},
		"only this endpoint is asked":                {{"a", "1", 0, true, ""}, {"a", "1", 1, false, ""}, {"a", "1", 2, true, ""}, {"a", "1", 3, false, ""}},
		"others are served, and it never":            {{"a", "1", 0, false, ""}, {"b", "1", 1, true, "1:a"}, {"a", "1", 2, false, "endpoint"}},
		"others that left later":                     {{"a", "1", 0, false, ""}, {"a", "1", 1, true, ""}, {"b", "1", 3, true, "1:a"}, {"a", "1", 2, false, "endpoint"}},
		"others that left before":                    {{"c", "9", 0, false, ""}, {"a", "1", 1, true, "9:c"}, {"b", "1", 2, true, ""}, {"a", "1", 3, false, ""}},
		"it is served to others":                     {{"c", "9", 0, false, ""}, {"a", "2", 1, true, "9:c"}, {"b", "1", 2, true, ""}, {"a", "1", 3, false, ""}},
		"on several accounts":                        {{"a", "1", 0, false, ""}, {"b", "1", 1, true, "1:a"}, {"a", "2", 2, false, "all"}, {"a", "3", 3, false, "all"}},
		"several endpoints, and nothing was served":  {{"c", "9", 0, false, ""}, {"b", "1", 1, true, "9:c"}, {"a", "1", 2, false, "endpoint"}, {"d", "1", 3, false, ""}},
		"another account says so before anything is": {{"a", "1", 0, false, ""}, {"b", "2", 1, true, "1:a"}},
	} {
		var e Evidence
		for i, s := range history {
			at := noon.Add(time.Duration(s.sent) * time.Second)
			got := ""
			if s.served {
				for _, one := range e.Served(s.key, s.account, at, at) {
					require.Equal(t, noon.Add(time.Hour), one.Until)
					got += one.Account + ":" + string(one.Key)
				}
			} else if endpoint, all := e.Refused(s.key, s.account, at, at, false); all {
				got = "all"
			} else if endpoint {
				got = "endpoint"
			} else {
				e.CoolsDown(s.key, s.account, noon.Add(time.Hour))
			}
			if i == 0 && !s.served && s.key == "c" {
				continue // it only has what is served noted
			}
			require.Equal(t, s.want, got, "%s, %d", name, i)
		}
	}
	var e Evidence
	require.Nil(t, e.Served("a", "1", noon, noon), "nothing is noted before anything is refused")
	require.False(t, e.Any.Load())
	endpoint, _ := e.Refused("a", "1", noon, noon, true)
	require.True(t, endpoint, "the response says that it is not the account's window")
	require.True(t, e.Any.Load())
	e.Served("b", "1", noon, noon.Add(3*time.Hour))
	require.False(t, e.Any.Load(), "it is long ago")
}
