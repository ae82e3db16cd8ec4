package dashboard

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/internal/view"
)

// An accountAnswer is what programs get of one account.
type accountAnswer struct {
	Budget       string       `json:"budget"`
	Account      view.Account `json:"account"`
	SampledSince time.Time    `json:"sampled_since"`
	Series       []seriesView `json:"series"`
}

type seriesView struct {
	Limit  string      `json:"limit"`
	Points []pointView `json:"points"`
}

type pointView struct {
	At        time.Time `json:"at"`
	Used      int       `json:"used"`
	Ahead     int       `json:"booked_ahead"`
	Remaining int       `json:"remaining"`
}

func (a *accountAnswer) add(limit string, points []point) {
	one := seriesView{Limit: limit, Points: []pointView{}}
	for _, p := range points {
		one.Points = append(one.Points, pointView{p.at.UTC(), p.used, p.ahead, p.remaining})
	}
	a.Series = append(a.Series, one)
}

var templates = template.Must(template.ParseFS(pages, "templates/*.html"))

// show answers with a page, with the same as JSON, or with a stream of it.
func (h *Handler) show(build func(*http.Request, *snapshot) *page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		accept := r.Header.Get("Accept")
		if strings.Contains(accept, "text/event-stream") {
			h.stream(w, r, build)
			return
		}
		s := h.sampler.look(r.Context(), h.Store)
		p := build(r, s)
		asJSON := strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
		switch {
		case p == nil && s.err != nil:
			http.Error(w, "ration: the store does not answer: "+view.Printable(s.err.Error()), http.StatusServiceUnavailable)
		case p == nil:
			http.Error(w, "ration: nothing is known of that; an account is forgotten a day after its last call", http.StatusNotFound)
		case asJSON && s.err != nil:
			http.Error(w, "ration: the store does not answer: "+p.Error, http.StatusServiceUnavailable)
		case asJSON:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(p.json)
		default:
			render(w, "page", p)
		}
	}
}

func render(w http.ResponseWriter, name string, data any) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		http.Error(w, "ration: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes())
}

// sendWithin is how long a viewer may take to accept what it is sent.
const sendWithin = 10 * time.Second

// stream sends what the page shows whenever that is another, until the viewer goes.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, build func(*http.Request, *snapshot) *page) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx
	control := http.NewResponseController(w)
	ticker := time.NewTicker(often / 5) // the first that finds the snapshot old has the store read
	defer ticker.Stop()
	number, sent := int64(0), ""
	for {
		if s := h.sampler.look(r.Context(), h.Store); s.number != number {
			number = s.number
			event := s.event(r, build)
			if event == sent {
				event = ":\n\n" // a proxy must not think that nobody is there
			} else {
				sent = event
			}
			_ = control.SetWriteDeadline(time.Now().Add(sendWithin))
			if _, err := w.Write([]byte(event)); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// lineEnds has each line of a text begin as one of an event does. What a viewer asks for, and the page shows, may have any of the
// characters that end a line there.
var lineEnds = strings.NewReplacer("\r\n", "\ndata: ", "\r", "\ndata: ", "\n", "\ndata: ")

// event returns what is sent of the snapshot to those that look at an address.
func (s *snapshot) event(r *http.Request, build func(*http.Request, *snapshot) *page) string {
	address := r.URL.String()
	if known, found := s.renders.Load(address); found {
		return known.(string)
	}
	var out bytes.Buffer
	event := "event: gone\ndata:\n\n"
	if p := build(r, s); p != nil && templates.ExecuteTemplate(&out, "main", p) == nil {
		event = "data: " + lineEnds.Replace(strings.TrimSpace(out.String())) + "\n\n"
	}
	s.renders.Store(address, event)
	return event
}
