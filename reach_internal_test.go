package ration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReachOfAScope(t *testing.T) {
	req := calling(t, "GET", "http://api.test/v1/17841400000000001/media")
	endpoint, object := endpointOf(req), objectOf(req)
	app := []Account{{ID: "the-app", Scope: ScopeApp}, {ID: "the-address", Scope: ScopeIP}, {ID: "other"}}
	for _, row := range []struct {
		scope  Scope
		object string
		scopes []string
		shared []Account
		want   reach
	}{
		{scope: "", want: reach{account: true}},
		{scope: "token", want: reach{account: true}},
		{scope: "user+core", want: reach{account: true}},
		{scope: "installation", want: reach{account: true}},
		{scope: "app", want: reach{}},
		{scope: "project", want: reach{}},
		{scope: "ip", want: reach{}},
		{scope: "app+user", want: reach{}},
		{scope: "app", shared: app, want: reach{shared: []string{"the-app"}}},
		{scope: "ip", shared: app, want: reach{shared: []string{"the-address"}}},
		{scope: "project", shared: app, want: reach{}},
		{scope: "token", shared: app, want: reach{account: true}},
		{scope: "endpoint", want: reach{matters: []matter{endpoint}}},
		{scope: "endpoint+method", want: reach{matters: []matter{endpoint}}},
		{scope: "bucket", object: "abc", want: reach{matters: []matter{endpoint}}},
		{scope: "user+endpoint", want: reach{account: true, matters: []matter{endpoint}}},
		{scope: "app+endpoint", want: reach{matters: []matter{endpoint}}},
		{scope: "app+endpoint", shared: app, want: reach{matters: []matter{endpoint}}},
		{scope: "user+search", scopes: []string{"search", "read"}, want: reach{account: true, matters: []matter{scopeMatter("search")}}},
		{scope: "user+endpoint", scopes: []string{"read"}, want: reach{account: true, matters: []matter{scopeMatter("read")}}},
		{scope: "object", want: reach{matters: []matter{object}}},
		{scope: "resource", want: reach{matters: []matter{object}}},
		{scope: "object", object: "17841400000000001", want: reach{matters: []matter{partOfPath(req, "17841400000000001")}}},
		{scope: "object", object: "178", want: reach{matters: []matter{object}}},
		{scope: "user+object", want: reach{account: true, matters: []matter{object}}},
	} {
		require.Equal(t, row.want, reachOf(row.scope, req, row.object, row.scopes, row.shared), "%+v", row)
	}
}

func TestScopeOfAnAnswer(t *testing.T) {
	spent := func(w Window) *Feedback {
		w.Remaining = told(int64(0))
		return &Feedback{Windows: []Window{w}}
	}
	left := Window{Name: "search", Remaining: told(int64(5))}
	for _, row := range []struct {
		f         *Feedback
		byDefault Scope
		want      Scope
	}{
		{&Feedback{}, "", ""},
		{&Feedback{}, "user", "user"},
		{&Feedback{Scope: "app"}, "user", "app"},
		{&Feedback{Scope: "app", Windows: spent(Window{Scope: "user"}).Windows}, "ip", "app"},
		{&Feedback{Windows: []Window{left}}, "user", "user"},
		{spent(Window{Scope: "app"}), "user", "app"},
		{spent(Window{Scope: "user+endpoint"}), "app", "user+endpoint"},
		{spent(Window{Scope: "bucket"}), "token", "token+bucket"},
		{spent(Window{Scope: "bucket"}), "", "bucket"},
		{spent(Window{Name: "search"}), "user", "user+search"},
		{spent(Window{Name: "search"}), "", "search"},
		{spent(Window{Name: "core"}), "user", "user"},
		{spent(Window{Name: "15min", Length: told(15 * time.Minute)}), "user+endpoint", "user+endpoint"},
	} {
		require.Equal(t, row.want, scopeOf(row.f, row.byDefault), "%+v by %q", row.f, row.byDefault)
	}
}
