package dashboard_test

import (
	"flag"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/dashboard"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/stalls"
	"github.com/ration-go/ration/store"
)

var redraw = flag.Bool("redraw", false, "update the pages of testdata")

// What holds a fleet up is named in the first three lines of its page, before any table, as testdata has them. To update
// them: go test ./dashboard -run Stall -redraw
func TestThePageNamesTheStall(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	atATerminal := map[string]string{"endpoint": "free the rest: ration resume api -except-endpoint 'GET https://api.example.com/likes/*'",
		"one account": "to end it: ration resume api 00000000", "paused by hand": "to end it: ration resume api\n",
		"dead token": "if it works again, have it tried at once: ration resume api -token 00000000", "dead token to be tried": "ration resume api -token 00000000"}
	for name, stalled := range stalls.All(now) {
		t.Run(name, func(t *testing.T) {
			require.NotEmpty(t, stalls.Named[name])
			s := newFakeStore()
			s.set(func(d *store.Description) {
				*d = stalled
				d.Budget = "api"
			})
			w := answer(&dashboard.Handler{Store: s, Actions: true}, local(http.MethodGet, "/b/api", nil))
			require.Equal(t, http.StatusOK, w.Code)
			lines := strings.SplitAfter(readable(w.Body.String()), "\n")
			require.Contains(t, strings.Join(lines[1:4], ""), stalls.Named[name], "below the title")
			require.Greater(t, len(lines), 50)
			shown := strings.Join(lines[:18], "") // to the first accounts
			readOnly := readable(answer(&dashboard.Handler{Store: s}, local(http.MethodGet, "/b/api", nil)).Body.String())
			require.Contains(t, readOnly, atATerminal[name])
			require.Equal(t, atATerminal[name] == "", !strings.Contains(readOnly, "ration resume"))
			testkit.Golden(t, "testdata/page-"+strings.ReplaceAll(name, " ", "-")+".txt", shown, *redraw)
		})
	}
}

// readable returns what a page says, without its head, drawings and the time of day: a line for each block.
func readable(page string) string {
	for _, one := range [...][2]string{
		{`(?s)^.*<main[^>]*>`, ""}, {`(?s)<svg.*?</svg>`, ""}, {`(?s)<footer.*$`, ""}, {`\s+`, " "},
		{`\b\d\d:\d\d:\d\d\b`, "12:00:00"}, {`</(h1|h2|p|li|tr)>|<br>`, "\n"}, {`</t[hd]>`, "  "}, {`<[^>]*>`, ""}, {`(?m)^[ \t]+|[ \t]+$`, ""}, {`\n+`, "\n"},
	} {
		page = regexp.MustCompile(one[0]).ReplaceAllString(page, one[1])
	}
	return html.UnescapeString(page)
}
