package proxy

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/sweep"
)

// Grants are those that this proxy has handed out, and those that were reported to it.
type grants struct {
	mu       sync.Mutex // protects all
	waiting  map[string]*held
	reported sweep.Map[string, time.Time]
	none     chan struct{} // closed when none waits; nil: nobody wants to know
}

// add adds a grant, unless it has ended.
func (g *grants) add(id string, h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.id = id; !h.over {
		g.waiting[id] = h
	}
}

// end removes a grant that was reported, or never will be.
func (g *grants) end(h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.over = true
	delete(g.waiting, h.id)
	if len(g.waiting) == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

// report returns the grant, if it was handed out here and waits, and whether it is reported for the first time here.
func (g *grants) report(id string) (h *held, once bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.reported.Sweep(func(_ string, at time.Time) bool { return now.Sub(at) > reportWithin })
	if !g.reported.Get(id).IsZero() {
		return nil, false
	}
	g.reported.Set(id, now)
	h = g.waiting[id]
	delete(g.waiting, id)
	return h, true
}

// settle waits until none waits for its report, or the context ends.
func (g *grants) settle(ctx context.Context) {
	g.mu.Lock()
	if len(g.waiting) == 0 {
		g.mu.Unlock()
		return
	}
	if g.none == nil {
		g.none = make(chan struct{})
	}
	none := g.none
	g.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// A sealed is what a grant is handed out as: all that its report needs, signed, so that any proxy of the fleet takes the report.
type sealed struct {
	Budget string
	Take   takeRequest // that it was taken by
	Grant  []byte      // as ration.WithGrant takes it
	At     int64       // when, in seconds
}

// A seal signs grants: it is the same for all proxies of a fleet.
type seal []byte

// seals returns the fleet's, or this process's own.
func (s *Server) seals(ctx context.Context) (seal, error) {
	s.sealing.Lock()
	defer s.sealing.Unlock()
	if s.sealed != nil {
		return s.sealed, nil
	}
	key := []byte(rand.Text())
	if s.Key != nil {
		var err error
		if key, err = s.Key(ctx); err != nil {
			return nil, err
		}
	}
	s.sealed = key
	return s.sealed, nil
}

func (s seal) sum(text string) []byte {
	h := hmac.New(sha256.New, s)
	_, _ = h.Write([]byte(text)) // which never fails
	return h.Sum(nil)
}

// close returns a grant as it is handed out.
func (s seal) close(taken takeRequest, budget string, g ration.Grant) (string, error) {
	grant, err := g.MarshalText()
	if err != nil {
		return "", err
	}
	taken.MaxWait, taken.Caller = "", ""
	text, err := json.Marshal(sealed{budget, taken, grant, time.Now().Unix()})
	if err != nil {
		return "", err
	}
	payload := base64.RawURLEncoding.EncodeToString(text)
	return payload + "." + base64.RawURLEncoding.EncodeToString(s.sum(payload)), nil
}

// open returns what a grant says that a proxy of the fleet has handed out within reportWithin.
func (s seal) open(id string) (one sealed, known bool) {
	payload, signature, _ := strings.Cut(id, ".")
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, s.sum(payload)) {
		return sealed{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(text, &one) != nil {
		return sealed{}, false
	}
	return one, time.Since(time.Unix(one.At, 0)) <= reportWithin
}
