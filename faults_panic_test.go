package ration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A panic of the caller's own functions goes through, and leaves no body open: a server
// that recovers goes on.
func TestFault39BodyIsClosedWhereTheCallersFunctionPanics(t *testing.T) {
	for name, change := range map[string]func(*ration.Transport){
		"Cost":    func(x *ration.Transport) { x.Cost = func(*http.Request) int { panic("Cost") } },
		"Scopes":  func(x *ration.Transport) { x.Scopes = func(*http.Request) []string { panic("Scopes") } },
		"Attach":  func(x *ration.Transport) { x.Attach = func(*http.Request, string) { panic("Attach") } },
		"Granted": func(x *ration.Transport) { x.OnGrant = func(*http.Request, ration.Grant) { panic("Granted") } },
	} {
		t.Run(name, func(t *testing.T) {
			api := newProvider(nil)
			transport := &ration.Transport{Base: api, Pool: ration.NewPool(newBudget(ration.PerHour(5)), ration.NewToken("a"))}
			change(transport)
			content := newBody("content")
			require.PanicsWithValue(t, name, func() {
				_, _ = transport.RoundTrip(newRequest(t, http.MethodPost, "http://api.test/", content))
			})
			require.Equal(t, 1, content.closed)
			require.Empty(t, api.all())
		})
	}
	t.Run("Refused", func(t *testing.T) {
		var answers []*body
		api := newProvider(keepBodies(&answers, refusing(1, "Retry-After", "60")))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(newBudget(ration.PerHour(5)), ration.NewToken("a")),
			OnRefusal: func(*http.Response, ration.Grant) { panic("Refused") }}
		require.PanicsWithValue(t, "Refused", func() {
			_, _ = transport.RoundTrip(newRequest(t, http.MethodPost, "http://api.test/", strings.NewReader("content")))
		})
		require.Equal(t, 1, answers[0].closed)
	})
}
