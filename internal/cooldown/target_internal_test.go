package cooldown

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider"
)

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
		{scope: "bucket", object: "abc", want: Target{Keys: []Key{endpoint}}},
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
		require.Equal(t, row.want, ScopeOf(row.f, row.byDefault), "%+v by %q", row.f, row.byDefault)
	}
}
