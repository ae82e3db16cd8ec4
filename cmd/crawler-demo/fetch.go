package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	answer string      // the last that was a failure
	timer  *time.Timer // ends a call to another host that is never answered
}

// A call is a request on a grant.
type call struct {
	send
	token     ration.Token
	slot      time.Time
	sent      time.Time
	connected bool
}

var (
	errStopped = errors.New("the crawl was stopped")
	errSilent  = fmt.Errorf("no whole answer within %v", callTimeout)
)

const (
	// callTimeout bounds a call from its slot to the last byte of the answer.
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

	ctx = ration.WithTrace(context.WithValue(ctx, activeJobKey{}, e), c.waitsOf)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if n := len(e.calls); n > 0 {
			e.calls[n-1].connected = true
		}
	}})
	r := new(result)
	err := c.get(ctx, e, j.URL, r)
	went := time.Now()
	for i, call := range e.calls {
		next := went
		if i+1 < len(e.calls) {
			next = e.calls[i+1].sent.Add(-time.Duration(e.calls[i+1].Waited) * time.Microsecond)
		}
		call.Took = max(0, next.Sub(call.sent).Microseconds())
		// Without a connection nothing was sent, and the slot was cancelled.
		if call.connected {
			r.Sends = append(r.Sends, call.send)
		}
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		r.Unsent = errors.Is(err, errStopped)
		if failed, found := errors.AsType[*url.Error](err); found {
			err = failed.Err // the job's URL is printed with it
		}
		switch {
		case errors.Is(err, ration.ErrStoreUnavailable):
			r.Fatal, err = true, fmt.Errorf("nothing more was sent, because nothing can be booked (%w)", err)
		case errors.Is(err, ration.ErrNoToken):
			r.Fatal = true
		}
		r.Error = c.failureText(e, err)
	}
	return r
}

// get fetches a URL and puts into the result what came of it.
func (c *workerGroup) get(ctx context.Context, e *activeJob, target string, r *result) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "crawler-demo (github.com/ration-go/ration)")
	maps.Copy(req.Header, c.setup.Header)
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r.Status = resp.StatusCode
	if err := c.failure(resp); err != nil {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		return err
	}
	if r.Rejected = mayRejectToken(resp.StatusCode); r.Rejected {
		r.Answer = c.answerText(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestBody+1))
	if err != nil {
		return err
	}
	if len(body) > largestBody {
		return fmt.Errorf("the answer has more than %d MiB", largestBody>>20)
	}
	if resp.StatusCode < 300 {
		next, err := follow(c.setup.Follow, c.redactor, resp.Request.URL, resp.Header.Values("Link"), body)
		r.Next = next
		if err != nil {
			r.Warning = c.redactor.text(err.Error())
		}
	}
	if c.setup.Keep {
		r.Record, err = c.record(e, target, resp, r, body)
	}
	return err
}

// failure says why an answer is not to be kept, if so.
func (c *workerGroup) failure(resp *http.Response) error {
	f, _ := ration.FeedbackOf(resp)
	if definitive(resp.StatusCode) && !f.Refused && (!f.Retryable || mayRejectToken(resp.StatusCode)) && f.Reason != provider.ReasonPartial {
		return nil
	}
	return &answerError{"the provider answered " + c.answerText(resp)}
}

// answerText is the status of an answer, what it is taken for, and how its body begins.
func (c *workerGroup) answerText(resp *http.Response) string {
	text := statusText(resp)
	if f, _ := ration.FeedbackOf(resp); f.Reason != "" {
		text += fmt.Sprintf(" (%s)", f.Reason)
	}
	return text + c.beginning(resp)
}

// An answerError is an answer that is not to be kept.
type answerError struct{ text string }

func (e *answerError) Error() string { return e.text }

// failureText is why a job failed. If the provider did not answer it in the end but refused it
// or its tokens before, that is what people look for.
func (c *workerGroup) failureText(e *activeJob, err error) string {
	text := c.redactor.text(oneLine(err))
	if errors.Is(err, ration.ErrNoToken) && e.answer == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if why := c.rejection; why != "" {
			text += "; before, " + why
		}
		return text
	}
	if _, answered := errors.AsType[*answerError](err); answered || e.answer == "" {
		return text
	}
	return text + "; the last answer was " + e.answer
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
func (c *workerGroup) record(e *activeJob, target string, resp *http.Response, r *result, body []byte) ([]byte, error) {
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
		kept.Token, kept.Slot, kept.Sent = last.token.ID(), instant(last.slot), instant(last.sent)
	}
	if c.setup.Follow.follows() {
		kept.Next = &r.Next
	}
	for _, value := range resp.Header.Values("Link") {
		kept.Link = append(kept.Link, c.redactor.text(value))
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
	c.waiting++
	return true
}

func (c *workerGroup) end(e *activeJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.active, e)
	if !e.sent {
		c.waiting--
	}
	e.stopTimer()
}

// set moves the job between waiting for a slot and being under way. One that
// waits does not outlive a stop.
func (e *activeJob) set(sent bool) {
	e.group.mu.Lock()
	defer e.group.mu.Unlock()
	switch {
	case sent && !e.sent:
		e.group.waiting--
	case !sent && e.sent:
		e.group.waiting++
	}
	if e.group.stopped {
		e.cancel(errStopped)
	}
	e.sent = sent
	e.stopTimer()
}

func (e *activeJob) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// granted is the transport's hook: a slot has come.
func granted(req *http.Request, g ration.Grant) {
	e := activeJobOf(req.Context())
	now := time.Now()
	e.calls = append(e.calls, call{
		send: send{Token: e.group.tokens[g.Token.ID()], Sent: now.UnixMicro(), Late: max(0, g.Late.Microseconds()),
			Waited: g.Waited.Microseconds()},
		token: g.Token, slot: g.Slot, sent: now,
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
	e.stopTimer()
	if slices.ContainsFunc(e.group.setup.Hosts, func(host string) bool { return strings.EqualFold(host, req.URL.Host) }) {
		e.set(false)
	} else { // it goes without a slot, and the transport has no time for it
		for name := range e.group.setup.Header { // which may be secrets of the hosts of the list
			req.Header.Del(name)
		}
		e.timer = time.AfterFunc(callTimeout, func() { e.cancel(errSilent) })
	}
	return nil
}
