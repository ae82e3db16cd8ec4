// Package dashboard serves a page to watch a fleet by: every budget and account in a store, their windows
// as charts that move, who waits for what, pauses, quarantines and refusals. See [Handler].
package dashboard

import (
	"context"
	"crypto/rand"
	"embed"
	"net/http"
	"sync"
	"time"

	"github.com/ration-go/ration/store"
)

// A Store is what a [Handler] shows: a *ration.RedisStore.
type Store interface {
	// Budgets returns those that were booked lately.
	Budgets(context.Context) ([]store.KnownBudget, error)
	// Describe returns all that is known of a budget.
	Describe(ctx context.Context, budget string) (store.Description, error)
	// Pause holds back an account, or all.
	Pause(context.Context, store.PauseRequest) (store.PauseReply, error)
	// Quarantine ends that of a token, which is then tried.
	Quarantine(context.Context, store.QuarantineRequest) (store.PauseReply, error)
	// Card ends the pace of an account.
	Card(context.Context, store.CardRequest) (store.CardReply, error)
	// Resume ends pauses and quarantines, and forgets.
	Resume(context.Context, store.ResumeRequest) (store.PauseReply, error)
}

// A Handler serves the page. The same addresses answer "Accept: application/json" with JSON, and "Accept:
// text/event-stream" with a stream of what has changed, at most once a second. However many look, the store
// is read once a second at most, and not at all if nobody does and [Handler.Run] is not called.
//
// /metrics has the sums of each budget for Prometheus, behind the same door. /healthz answers anybody, and says only whether the
// store answers: 200, or 503.
//
// The page can be mounted at any path, with [http.StripPrefix]. It needs no other host, and shows no token:
// a store has only digests.
//
// Out of the box it answers requests of this machine, to a name of this machine. Beyond it, name the Hosts
// and set a Password or Authorize. Requests that another site has a browser make get no answer.
//
// Set the fields before first use. A Handler is safe for concurrent use, and must not be copied.
type Handler struct {
	// Store is what is shown. Required.
	Store Store
	// Hosts are names by which the page may be asked for, with or without a port, beside those of this
	// machine: localhost and loopback addresses. Any other name is answered with 421, so that no site can
	// make its own name mean this machine. Empty: only names of this machine.
	Hosts []string
	// Password is asked for by HTTP Basic, with any user name. Empty: there is none, and only requests that
	// come from this machine are answered, unless Authorize is set.
	Password string
	// Authorize says whether to answer a request, in place of Password: the program's own check. Nil:
	// Password decides.
	Authorize func(*http.Request) bool
	// Actions lets people pause, resume and forget, each after another question. Zero: they can only look.
	Actions bool

	once    sync.Once
	mux     *http.ServeMux
	proof   string // that a form is this Handler's own
	sampler sampler
}

//go:embed assets
var assets embed.FS

//go:embed templates
var pages embed.FS

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.once.Do(h.begin)
	if r.URL.Path == "/healthz" {
		h.healthz(w, r)
		return
	}
	if h.admits(w, r) {
		h.mux.ServeHTTP(w, r)
	}
}

func (h *Handler) begin() {
	h.proof = rand.Text()
	h.mux = http.NewServeMux()
	h.mux.Handle("GET /assets/", http.FileServerFS(assets))
	h.mux.HandleFunc("GET /metrics", h.metrics)
	h.mux.HandleFunc("GET /{$}", h.show(h.budgetsPage))
	h.mux.HandleFunc("GET /b/{budget}", h.show(h.budgetPage))
	h.mux.HandleFunc("GET /b/{budget}/a/{account}", h.show(h.accountPage))
	h.mux.HandleFunc("GET /b/{budget}/do/{action}", h.ask)
	h.mux.HandleFunc("POST /b/{budget}/do/{action}", h.do)
}

// idle is how often Run reads the store while nobody looks.
const idle = 5 * time.Second

// Run reads the store every five seconds until the context ends, so that the charts have a past when
// somebody comes to look. A store that does not answer is asked again. It returns the context's error.
func (h *Handler) Run(ctx context.Context) error {
	for {
		h.sampler.look(ctx, h.Store)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(idle):
		}
	}
}
