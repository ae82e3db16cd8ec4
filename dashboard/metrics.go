package dashboard

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/view"
)

// healthz says whether the store answers. It tells nothing else, so it is outside of the door: a kubelet asks without a password.
func (h *Handler) healthz(w http.ResponseWriter, r *http.Request) {
	if s := h.sampler.look(r.Context(), h.Store); s.err != nil {
		http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// metrics answers with what the page shows, as Prometheus reads it. The names are those of package rationprom.
func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
	s := h.sampler.look(r.Context(), h.Store)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var m view.Exposition
	up := 1
	if s.err != nil {
		up = 0
	}
	m.Gauge("ration_collect_success", "1 if the store has answered this scrape, 0 if not.", up)
	for i := range s.all {
		if s.err != nil {
			break // what was read before is not what is
		}
		d := &s.all[i]
		sum := view.Summarize(d)
		for state := view.StateFree; state <= view.StateQuarantined; state++ {
			m.Gauge("ration_accounts", "Accounts of the budget by their state: free, spent, paused or quarantined.", sum.In[state], "budget", d.Budget, "state", state.String())
		}
		for reason, n := range sum.Waiting {
			m.Gauge("ration_waiting", "Callers that wait, by what for, as the processes said within ten seconds.", n, "budget", d.Budget, "reason", reason)
		}
		m.Gauge("ration_in_flight", "Requests that were sent and not answered, likewise.", sum.InFlight, "budget", d.Budget)
		m.Gauge("ration_refused_last_minute", "Responses that refused a request in the last minute, likewise.", sum.Refused, "budget", d.Budget)
		m.Gauge("ration_workers", "Processes that were heard of in the last minute, or said that they are idle.", len(d.Workers), "budget", d.Budget)
		m.Gauge("ration_workers_failing", "Of them those whose callers got nothing in the last minute by their own fault, such as limits that are not the fleet's.", sum.Failing, "budget", d.Budget)
		m.Gauge("ration_workers_silent", "Of them those that have ended without a word, or hang.", sum.Silent, "budget", d.Budget)
		m.Gauge("ration_longest_wait_seconds", "How long the caller waits that has waited longest.", sum.Longest.Seconds(), "budget", d.Budget)
		m.Gauge("ration_slots_per_second", "Callers that got their slot a second, as the processes said within ten seconds.", sum.SlotsPerSecond, "budget", d.Budget)
		for _, part := range []float64{0.5, 0.99} {
			m.Gauge("ration_wait_last_minute_seconds", "How long callers waited that got their slot in the last minute, at most, by the part of them.", sum.Waited.Quantile(part).Seconds(), "budget", d.Budget, "part", fmt.Sprint(part))
			m.Gauge("ration_answer_last_minute_seconds", "How long the answers took of the last minute, at most, by the part of them.", sum.Took.Quantile(part).Seconds(), "budget", d.Budget, "part", fmt.Sprint(part))
		}
		for class, n := range sum.Answers {
			m.Gauge("ration_answers_last_minute", "Answers in the last minute, by class: 2xx, 401, 403, 429, other 4xx, 5xx, no answer.", n, "budget", d.Budget, "class", class)
		}
		until := map[string]time.Time{"all": {}, "account": {}, "part": {}}
		for _, p := range d.Pauses {
			scope := "account"
			switch {
			case p.Key != "":
				scope = "part"
			case p.Account == "":
				scope = "all"
			}
			if p.Until.After(until[scope]) {
				until[scope] = p.Until
			}
		}
		for scope, at := range until {
			n := 0
			if !at.IsZero() {
				n = int(at.Unix())
			}
			m.Gauge("ration_paused_until_timestamp_seconds", "When the last pause ends, in Unix time: of all accounts, of one, or of a part of what is asked. 0: none is paused.", n,
				"budget", d.Budget, "scope", scope)
		}
		type sums struct{ limit, used, ahead, left int }
		of := make(map[string]sums)
		for _, a := range d.Accounts {
			if view.IsMeter(a.Account) {
				continue // it counts another unit, or one value of a key: there may be thousands
			}
			for _, l := range a.Limits {
				name := view.Measure(l.Limit)
				one := of[name]
				of[name] = sums{one.limit + l.Limit.Max, one.used + l.Used, one.ahead + l.Ahead, one.left + l.Remaining}
			}
		}
		for name, one := range of {
			labels := []string{"budget", d.Budget, "window", name}
			m.Gauge("ration_limit_units", "Units that a limit allows in its window.", one.limit, labels...)
			m.Gauge("ration_used_units", "Units of a limit that are used in the window that ends now.", one.used, labels...)
			m.Gauge("ration_booked_ahead_units", "Units of a limit that callers which wait have booked ahead.", one.ahead, labels...)
			m.Gauge("ration_remaining_units", "Units of a limit that are left.", one.left, labels...)
		}
	}
	_, _ = w.Write([]byte(m.String()))
}
