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
	open     int // takes that wait for a slot, and those that were handed out and not reported
	reported sweep.Map[[sha256.Size]byte, time.Time]
	none     chan struct{} // closed when none is open; nil: nobody wants to know
}

// begin says that a slot is being taken, until end.
func (g *grants) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open++
}

// add adds a grant that is handed out, unless it has ended.
func (g *grants) add(id string, h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.id = id; !h.over {
		g.waiting[id] = h
	}
}

// end removes one that was reported, or never will be.
func (g *grants) end(h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.over = true
	delete(g.waiting, h.id)
	if g.open--; g.open == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

// own returns a grant that was handed out here and waits for its report, once; nil: it does not.
func (g *grants) own(id string) *held {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.waiting[id]
	if delete(g.waiting, id); h != nil {
		g.note(id)
	}
	return h
}

// once notes that a grant is reported, and reports whether it is for the first time here.
func (g *grants) once(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.note(id)
}

// note is once. It needs mu.
func (g *grants) note(id string) (first bool) {
	now, key := time.Now(), sha256.Sum256([]byte(id))
	g.reported.Sweep(func(_ [sha256.Size]byte, at time.Time) bool { return now.Sub(at) > reportWithin })
	if first = g.reported.Get(key).IsZero(); first {
		g.reported.Set(key, now)
	}
	return first
}

// forget says that a report was not read: it may come again.
func (g *grants) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reported.Remove(sha256.Sum256([]byte(id)))
}

// settle waits until no slot is being taken, and none waits for its report, or the context ends.
func (g *grants) settle(ctx context.Context) {
	g.mu.Lock()
	if g.open == 0 {
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

// keyWithin is how long the store may take to tell the key.
const keyWithin = 2 * time.Second

// seals returns the fleet's, or this process's own. One request asks, and the others wait for that as long as they may.
func (s *Server) seals(ctx context.Context) (seal, error) {
	select {
	case s.sealing <- struct{}{}:
		defer func() { <-s.sealing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.sealed != nil {
		return s.sealed, nil
	}
	key := []byte(rand.Text())
	if s.Key != nil {
		ctx, stop := context.WithTimeout(ctx, keyWithin)
		defer stop()
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
