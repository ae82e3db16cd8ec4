package dashboard

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/dashboard"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// A fleet is a budget in a real Redis, and the page of it.
type fleet struct {
	server *redistest.Server
	kept   *ration.RedisStore
	budget *ration.Budget
	token  ration.Token
	url    string
}

func newFleet(t *testing.T, limits ...ration.Limit) *fleet {
	server := redistest.Start(t)
	kept := &ration.RedisStore{Client: server.Client(t)}
	f := &fleet{server: server, kept: kept, budget: &ration.Budget{Name: "instagram", Limits: limits, Store: kept}, token: ration.NewToken("sentinel-secret")}
	f.token.Label = "ann"
	page := httptest.NewServer(&dashboard.Handler{Store: kept, Actions: true})
	t.Cleanup(page.Close)
	f.url = page.URL
	return f
}

func (f *fleet) call(t *testing.T, times int) {
	t.Helper()
	for range times {
		_, err := f.budget.Wait(t.Context(), f.token, 1)
		require.NoError(t, err)
	}
}

// eventually waits until a window shows a text.
func (w *window) eventually(want string) {
	w.t.Helper()
	w.settles(func(text string) bool { return strings.Contains(text, want) })
}

// settles waits until a window shows what is wanted.
func (w *window) settles(isWanted func(text string) bool) {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !isWanted(w.text()) {
		require.True(w.t, time.Now().Before(deadline), "it is not shown:\n%s", w.text())
		time.Sleep(20 * time.Millisecond)
	}
}

// The page shows what Usage says, moves when calls are made, and shows a pause that another window made.
func TestThePageMoves(t *testing.T) {
	b := start(t)
	f := newFleet(t, ration.PerHour(100))
	f.call(t, 30)
	account := b.open(t, f.url+"/b/instagram/a/"+f.token.AccountID())
	other := start(t) // a tab that nobody looks at shows nothing new
	budget := other.open(t, f.url+"/b/instagram")
	usage, err := f.budget.Usage(t.Context(), f.token)
	require.NoError(t, err)
	account.eventually(fmt.Sprintf("%d used", usage.Limits[0].Used))
	account.eventually(fmt.Sprintf("%d left of 100", usage.Limits[0].Remaining))
	t.Logf("first paint after %.0f ms", evaluate[float64](account, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	shape := evaluate[string](account, `document.querySelector(".chart .used").getAttribute("points")`)
	f.call(t, 40)
	account.eventually("70 used")
	require.NotEqual(t, shape, evaluate[string](account, `document.querySelector(".chart .used").getAttribute("points")`))
	budget.eventually("70")

	// One window pauses, by keyboard alone; the other shows it within a second of the store's word.
	budget.run(chromedp.Focus(`input[type=search]`))
	account.run(chromedp.Evaluate(`document.querySelector('a[href*="/do/pause"]').focus()`, nil), chromedp.KeyEvent("\r"), chromedp.WaitReady("form.ask"))
	account.run(chromedp.SendKeys(`input[name=reason]`, "for a look"), chromedp.KeyEvent("\r"))
	begun := time.Now()
	budget.eventually("for a look, at the dashboard")
	took := time.Since(begun)
	t.Logf("a pause shows in another window after %v", took)
	require.Less(t, took, 2*time.Second)
	require.Equal(t, "q", evaluate[string](budget, `document.activeElement.name`), "the focus stays")
	account.eventually("ann paused")
	b.requireNoComplaint(t)
	other.requireNoComplaint(t)
}

// A Redis that is started again is waited for.
func TestThePageSurvivesARestart(t *testing.T) {
	b := start(t)
	f := newFleet(t, ration.PerHour(100))
	f.call(t, 5)
	w := b.open(t, f.url+"/b/instagram")
	f.server.Kill()
	w.eventually("The store does not answer")
	w.eventually("ann")
	w.picture("down", 1100, 600, false)
	f.server.Restart(t)
	f.call(t, 3)
	w.settles(func(text string) bool { return !strings.Contains(text, "does not answer") })
	b.requireNoComplaint(t)
}

// Each page can be used by a screen reader and by keyboard, in the light and in the dark, as far as axe-core
// can tell, and fits a phone.
func TestThePageIsAccessible(t *testing.T) {
	b := start(t)
	source := axe(t)
	f := busyFleet(t)
	for _, address := range []string{"/", "/b/instagram", "/b/instagram/a/" + f.token.AccountID(), "/b/instagram/do/pause?account=" + f.token.AccountID()} {
		for _, dark := range []bool{false, true} {
			w := b.open(t, f.url+address)
			w.picture("checked", 400, 800, dark)
			w.requireAccessible(source)
			w.close()
		}
	}
	b.requireNoComplaint(t)
}

// A picture of each page, in the light and the dark, on a phone, paused, and of a thousand accounts. None is
// wider than its screen.
func TestPictures(t *testing.T) {
	b := start(t)
	f := busyFleet(t)
	account := b.open(t, f.url+"/b/instagram/a/"+f.token.AccountID())
	for range 40 {
		f.call(t, 1)
		time.Sleep(150 * time.Millisecond)
	}
	_, err := f.kept.Pause(t.Context(), store.PauseRequest{Budget: "instagram", Account: f.token.AccountID(), For: 20 * time.Second,
		Cause: "429 Too Many Requests from https://graph.instagram.com/me/media, which asks for 20s (told by crawler-3, process 812)"})
	require.NoError(t, err)
	account.eventually("paused")
	time.Sleep(4 * time.Second)
	account.picture("account", 1100, 760, false)
	account.picture("account-dark", 1100, 760, true)
	account.picture("account-phone", 390, 800, false)
	budget := b.open(t, f.url+"/b/instagram")
	budget.picture("budget-paused", 1100, 760, false)
	budget.picture("budget-phone-dark", 390, 800, true)
	home := b.open(t, f.url)
	home.picture("budgets", 1100, 420, false)
	for i := range 1000 {
		token := ration.NewToken(fmt.Sprint("secret ", i))
		token.Label = fmt.Sprintf("user-%03d", i)
		_, err := f.budget.Try(t.Context(), token, 1+i%60)
		require.NoError(t, err)
	}
	many := b.open(t, f.url+"/b/instagram")
	many.eventually("1001 in all")
	many.picture("thousand", 1100, 760, false)
	b.requireNoComplaint(t)
}

// busyFleet has some of everything.
func busyFleet(t *testing.T) *fleet {
	f := newFleet(t, ration.Limit{Max: 60, Window: 10 * time.Second}, ration.PerHour(5000))
	f.call(t, 50)
	_, err := f.kept.Status(t.Context(), store.StatusRequest{Budget: "instagram", Worker: "crawler-3:812", Load: store.Load{Waiting: map[string]int{"quota": 14, "pause": 2}, InFlight: 6}})
	require.NoError(t, err)
	_, err = f.kept.Pause(t.Context(), store.PauseRequest{Budget: "instagram", Key: "k1", For: time.Hour, Cause: "429 Too Many Requests from https://graph.instagram.com/search, which asks for 3600s"})
	require.NoError(t, err)
	other := &ration.Budget{Name: "github", Limits: []ration.Limit{ration.PerHour(5000)}, Store: f.kept}
	_, err = other.Wait(t.Context(), ration.NewToken("another"), 100)
	require.NoError(t, err)
	return f
}
