package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

// An activeJob is a job that a worker has begun. All its fields but sent belong to that
// worker's goroutine, on which the client calls the hooks too.
type activeJob struct {
	group  *workerGroup
	cancel context.CancelCauseFunc
	sent   bool // and not waiting for a slot; group.mu protects it
	calls  []call
}

// A call is a request on a grant.
type call struct {
	send
	token     ration.Token
	slot      time.Time
	connected bool
}

var errStopped = errors.New("the crawl was stopped")

const (
	// callTimeout bounds a call from its slot to the last byte of the answer, unless -timeout does.
	callTimeout = 2 * time.Minute
	// largestBody bounds what one answer can take of the memory.
	largestBody = 64 << 20
)

type activeJobKey struct{}

func activeJobOf(ctx context.Context) *activeJob {
	e, _ := ctx.Value(activeJobKey{}).(*activeJob)
	return e
}

// fetch does one job.
func (c *workerGroup) fetch(j job) *result {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	e := &activeJob{group: c, cancel: cancel}
	if !c.begin(e) {
		return &result{Unsent: true}
	}
	defer c.end(e)
	ctx = httptrace.WithClientTrace(context.WithValue(ctx, activeJobKey{}, e), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if n := len(e.calls); n > 0 {
			e.calls[n-1].connected = true
		}
	}})
	r := new(result)
	err := c.get(ctx, e, j.URL, r)
	for _, call := range e.calls {
		if call.connected { // without a connection nothing was sent, and the slot was cancelled
			r.Sends = append(r.Sends, call.send)
		}
	}
	if err == nil {
		return r
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	r.Unsent = errors.Is(err, errStopped)
	if failed, found := errors.AsType[*url.Error](err); found {
		err = failed.Err // the job's URL is printed with it
	}
	r.Fatal = errors.Is(err, ration.ErrStoreUnavailable) || errors.Is(err, ration.ErrNoToken)
	r.Error = c.redactor.text(oneLine(err))
	return r
}

// get fetches a URL and puts into the result what came of it.
func (c *workerGroup) get(ctx context.Context, e *activeJob, target string, r *result) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "crawler-demo (github.com/ration-go/ration)")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r.Status = resp.StatusCode
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestBody+1))
	switch {
	case !isKept(resp):
		return errors.New("the provider answered " + answerText(resp, body))
	case err != nil:
		return err
	case len(body) > largestBody:
		return fmt.Errorf("the answer has more than %d MiB", largestBody>>20)
	}
	if resp.StatusCode < 300 {
		r.Next, err = follow(c.setup.Follow, c.redactor, resp.Request.URL, resp.Header.Values("Link"), body)
		if err != nil {
			r.Warning = c.redactor.text(err.Error())
		}
	}
	if c.setup.Keep {
		r.Record, err = c.record(e, target, resp, r.Next, body)
		return err
	}
	return nil
}

// isKept reports whether an answer would be the same at another time and with another token: a URL whose answer is kept
// is not fetched again.
func isKept(resp *http.Response) bool {
	f, _ := ration.FeedbackOf(resp)
	switch resp.StatusCode {
	case 400, 401, 403, 407, 408, 421, 423, 425, 429:
		return false
	}
	good := resp.StatusCode >= 200 && resp.StatusCode < 300 || resp.StatusCode >= 400 && resp.StatusCode < 500
	return good && !f.Refused && !f.Retryable && f.Reason != provider.ReasonPartial
}

// mostShown is how much of a body is shown.
const mostShown = 200

// answerText is the status of an answer, what it is taken for, and how its body begins.
func answerText(resp *http.Response, body []byte) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if f, _ := ration.FeedbackOf(resp); f.Reason != "" {
		text += fmt.Sprintf(" (%s)", f.Reason)
	}
	start := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "?")), " ")
	if start == "" || strings.ContainsFunc(start, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
		return text // a terminal might obey
	}
	if r := []rune(start); len(r) > mostShown {
		start = string(r[:mostShown]) + "..."
	}
	return text + ": " + start
}

// follow is the page that follows, as it is asked for and kept.
func follow(f follower, c *redactor, base *url.URL, links []string, body []byte) (string, error) {
	next, err := f.next(base, links, body)
	if next == "" || err != nil {
		return "", err
	}
	u, _ := url.Parse(next) // was looked at by f.next
	return c.url(next, u)
}

// record returns the line for -out.
func (c *workerGroup) record(e *activeJob, target string, resp *http.Response, next string, body []byte) ([]byte, error) {
	kept := record{
		URL:         target,
		Status:      resp.StatusCode,
		Received:    instant(time.Now()),
		ContentType: c.redactor.text(resp.Header.Get("Content-Type")),
	}
	if final, err := c.redactor.url(resp.Request.URL.String(), resp.Request.URL); err != nil {
		kept.FinalURL = c.redactor.text(resp.Request.URL.String())
	} else if final != target {
		kept.FinalURL = final
	}
	if n := len(e.calls); n > 0 {
		last := e.calls[n-1]
		kept.Token, kept.Slot, kept.Sent = last.token.ID(), instant(last.slot), instant(time.UnixMicro(last.Sent))
	}
	if c.setup.Follow.follows() {
		kept.Next = &next
	}
	kept.setBody(body, c.redactor)
	return kept.line()
}

// begin adds the job to the active ones, unless the group was stopped.
func (c *workerGroup) begin(e *activeJob) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	c.active[e] = struct{}{}
	return true
}

func (c *workerGroup) end(e *activeJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.active, e)
}

// set moves the job between waiting for a slot and being under way. One that
// waits does not outlive a stop.
func (e *activeJob) set(sent bool) {
	e.group.mu.Lock()
	defer e.group.mu.Unlock()
	if e.sent = sent; e.group.stopped {
		e.cancel(errStopped)
	}
}

// granted is the transport's hook: a slot has come.
func granted(req *http.Request, g ration.Grant) {
	e := activeJobOf(req.Context())
	e.calls = append(e.calls, call{
		send:  send{Token: e.group.tokens[g.Token.ID()], Sent: time.Now().UnixMicro()},
		token: g.Token, slot: g.Slot,
	})
	e.set(true)
}

// refused is the transport's hook: the call was refused, and may be sent again.
func refused(resp *http.Response, _ ration.Grant) {
	e := activeJobOf(resp.Request.Context())
	e.calls[len(e.calls)-1].Refused = true
	e.set(false)
}

// redirected follows a redirect as http.Client does. The page that a redirect
// names is a call of its own, with a slot of its own.
func redirected(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("the provider redirects from https to http, which would show the token: not followed")
	}
	e := activeJobOf(req.Context())
	if slices.ContainsFunc(e.group.setup.Hosts, func(host string) bool { return strings.EqualFold(host, req.URL.Host) }) {
		e.set(false)
		return nil
	}
	return nil
}
