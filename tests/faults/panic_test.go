package faults_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ration-go/ration/internal/rationtest"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// A panic of the caller's own functions goes through, and leaves no body open: a server
// that recovers goes on.
func TestBodyIsClosedWhereTheCallersFunctionPanics(t *testing.T) {
	for name, change := range map[string]func(*ration.Transport){
		"Cost":    func(x *ration.Transport) { x.Cost = func(*http.Request) int { panic("Cost") } },
		"Scopes":  func(x *ration.Transport) { x.Scopes = func(*http.Request) []string { panic("Scopes") } },
		"Attach":  func(x *ration.Transport) { x.Attach = func(*http.Request, string) error { panic("Attach") } },
		"Granted": func(x *ration.Transport) { x.OnGrant = func(*http.Request, ration.Grant) { panic("Granted") } },
	} {
		t.Run(name, func(t *testing.T) {
			api := rationtest.NewAPI(nil)
			transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a"))}
			change(transport)
			content := rationtest.NewBody("content")
			require.PanicsWithValue(t, name, func() {
				_, _ = transport.RoundTrip(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", content))
			})
			require.Equal(t, 1, content.Closed)
			require.Empty(t, api.Calls())
		})
	}
	t.Run("Refused", func(t *testing.T) {
		var answers []*rationtest.Body
		api := rationtest.NewAPI(rationtest.KeepBodies(&answers, rationtest.Throttling(1, "Retry-After", "60")))
		transport := &ration.Transport{Base: api, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken("a")),
			OnRefusal: func(*http.Response, ration.Grant) { panic("Refused") }}
		require.PanicsWithValue(t, "Refused", func() {
			_, _ = transport.RoundTrip(rationtest.NewRequest(t, http.MethodPost, "http://api.test/", strings.NewReader("content")))
		})
		require.Equal(t, 1, answers[0].Closed)
	})
}
