package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/view"
	"github.com/ration-go/ration/store"
)

// A question is what is asked before something is done.
type question struct {
	Root, Back, Title string
	Action            string // "pause", "resume" or "forget"
	What              string // what it is done to
	Means             string // what that means
	Account, Token    string
	Endpoint          string // which alone is resumed; "": all
	Proof             string
	Problem           string // why it was not done; "": it was not tried
}

var means = map[string]string{
	"pause":  "No process sends anything with it until the pause ends. Callers that wait book again behind the pause.",
	"resume": "Running processes go on at once. What was booked stays: a quota that is spent is not given back.",
	"forget": "What was booked of the account, its pauses and its limits are dropped. The provider goes on counting: do this if the log is wrong, not to get more quota.",
}

// question returns what a request asks for; nil: nothing that there is, and then it has answered.
func (h *Handler) question(w http.ResponseWriter, r *http.Request) *question {
	action := r.PathValue("action")
	if !h.Actions {
		http.Error(w, "ration: nothing can be changed here; Handler.Actions, or ration serve -actions, allows it", http.StatusForbidden)
		return nil
	}
	d := h.sampler.look(r.Context(), h.Store).find(r.PathValue("budget"))
	q := &question{Root: rootFrom(r.URL), Action: action, Means: means[action], Account: r.FormValue("account"), Proof: h.proof}
	if action == "resume" {
		q.Token, q.Endpoint = r.FormValue("token"), r.FormValue("endpoint")
	}
	known := d != nil && (q.Account == "" || slices.ContainsFunc(d.Accounts, func(a store.DescribedAccount) bool { return a.Account == q.Account }))
	if !known || q.Means == "" || action == "forget" && q.Account == "" {
		http.Error(w, "ration: nothing is known of that", http.StatusNotFound)
		return nil
	}
	q.Back = q.Root + "b/" + url.PathEscape(d.Budget)
	switch {
	case q.Token != "":
		q.What, q.Means = "token "+view.ShortID(view.Printable(q.Token)), "The next request tries the token, and the others wait for what comes of it."
	case q.Account != "":
		q.What = "account " + view.NameOf(d.Accounts, q.Account)
		q.Back += "/a/" + url.PathEscape(q.Account)
	case action == "resume" && q.Endpoint == "":
		q.What = "all that is paused or quarantined"
	default:
		q.What = "all accounts"
	}
	if q.Endpoint != "" {
		q.What = view.Printable(q.Endpoint) + " of " + q.What
	}
	q.What += " of budget " + view.Printable(d.Budget)
	q.Title = action + " " + q.What
	return q
}

// ask asks whether to do it.
func (h *Handler) ask(w http.ResponseWriter, r *http.Request) {
	if q := h.question(w, r); q != nil {
		render(w, "ask", q)
	}
}

// do does it, and goes back.
func (h *Handler) do(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if !isEqual(r.PostFormValue("proof"), h.proof) {
		http.Error(w, "ration: this form is not of this page, or of one before it was started again: load it anew", http.StatusForbidden)
		return
	}
	q := h.question(w, r)
	if q == nil {
		return
	}
	if err := h.change(r, q); err != nil {
		q.Problem = view.Printable(err.Error())
		render(w, "ask", q)
		return
	}
	if q.Action == "forget" {
		q.Back = q.Root + "b/" + url.PathEscape(r.PathValue("budget"))
	}
	http.Redirect(w, r, q.Back, http.StatusSeeOther)
}

// longestPause bounds what one form may do.
const longestPause = 48 * time.Hour

func (h *Handler) change(r *http.Request, q *question) error {
	budget := r.PathValue("budget")
	switch q.Action {
	case "pause":
		return h.pause(r, budget, q)
	case "resume":
		return h.resume(r.Context(), budget, q)
	}
	_, err := h.Store.Resume(r.Context(), store.ResumeRequest{Budget: budget, Account: q.Account, Forget: true})
	return err
}

func (h *Handler) pause(r *http.Request, budget string, q *question) error {
	length, err := time.ParseDuration(r.PostFormValue("for"))
	switch {
	case err != nil:
		return errors.New("say how long as 90s, 10m or 1h30m")
	case length <= 0 || length > longestPause:
		return fmt.Errorf("a pause lasts from 1ms to %v", longestPause)
	}
	cause := cmp.Or(r.PostFormValue("reason"), "somebody paused it") + ", at the dashboard"
	_, err = h.Store.Pause(r.Context(), store.PauseRequest{Budget: budget, Account: q.Account, For: length.Truncate(time.Microsecond), Cause: cause})
	return err
}

// resume resumes an account or all, an endpoint, or has a token tried.
func (h *Handler) resume(ctx context.Context, budget string, q *question) error {
	if q.Token == "" && q.Endpoint == "" {
		return view.Resume(ctx, h.Store, budget, q.Account, "the dashboard")
	}
	d, err := h.Store.Describe(ctx, budget)
	if err != nil {
		return err
	}
	if q.Token != "" {
		return view.TryToken(ctx, h.Store, &d, q.Token)
	}
	key, err := view.EndpointKey(q.Endpoint)
	if err != nil {
		return err
	}
	_, err = view.ResumeParts(ctx, h.Store, &d, q.Account, key)
	return err
}
