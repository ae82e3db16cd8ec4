package cooldown

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider"
)

func TestReachOfAScope(t *testing.T) {
	req := calling(t, "GET", "http://api.test/v1/17841400000000001/media")
	endpoint, object := EndpointOf(req), objectOf(req)
	app := []Shared{{ID: "the-app", Scope: provider.ScopeApp}, {ID: "the-address", Scope: provider.ScopeIP}, {ID: "other"}}
	for _, row := range []struct {
		scope  provider.Scope
		object string
		scopes []string
		shared []Shared
		want   Reach
	}{
		{scope: "", want: Reach{Account: true}},
		{scope: "token", want: Reach{Account: true}},
		{scope: "user+core", want: Reach{Account: true}},
		{scope: "installation", want: Reach{Account: true}},
		{scope: "app", want: Reach{}},
		{scope: "project", want: Reach{}},
		{scope: "ip", want: Reach{}},
		{scope: "app+user", want: Reach{}},
		{scope: "app", shared: app, want: Reach{Shared: []string{"the-app"}}},
		{scope: "ip", shared: app, want: Reach{Shared: []string{"the-address"}}},
		{scope: "project", shared: app, want: Reach{}},
		{scope: "token", shared: app, want: Reach{Account: true}},
		{scope: "endpoint", want: Reach{Matters: []Matter{endpoint}}},
		{scope: "endpoint+method", want: Reach{Matters: []Matter{endpoint}}},
		{scope: "bucket", object: "abc", want: Reach{Matters: []Matter{endpoint}}},
		{scope: "user+endpoint", want: Reach{Account: true, Matters: []Matter{endpoint}}},
		{scope: "app+endpoint", want: Reach{Matters: []Matter{endpoint}}},
		{scope: "app+endpoint", shared: app, want: Reach{Matters: []Matter{endpoint}}},
		{scope: "user+search", scopes: []string{"search", "read"}, want: Reach{Account: true, Matters: []Matter{scopeMatter("search")}}},
		{scope: "user+endpoint", scopes: []string{"read"}, want: Reach{Account: true, Matters: []Matter{scopeMatter("read")}}},
		{scope: "object", want: Reach{Matters: []Matter{object}}},
		{scope: "resource", want: Reach{Matters: []Matter{object}}},
		{scope: "object", object: "17841400000000001", want: Reach{Matters: []Matter{partOfPath(req, "17841400000000001")}}},
		{scope: "object", object: "178", want: Reach{Matters: []Matter{object}}},
		{scope: "user+object", want: Reach{Account: true, Matters: []Matter{object}}},
	} {
		require.Equal(t, row.want, ReachOf(row.scope, req, row.object, row.scopes, row.shared), "%+v", row)
	}
}

func TestScopeOfAnAnswer(t *testing.T) {
	spent := func(w provider.Window) *provider.Feedback {
		w.Remaining = provider.ToldOf(int64(0))
		return &provider.Feedback{Windows: []provider.Window{w}}
	}
	left := provider.Window{Name: "search", Remaining: provider.ToldOf(int64(5))}
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
		{spent(provider.Window{Name: "15min", Length: provider.ToldOf(15 * time.Minute)}), "user+endpoint", "user+endpoint"},
	} {
		require.Equal(t, row.want, ScopeOf(row.f, row.byDefault), "%+v by %q", row.f, row.byDefault)
	}
}
