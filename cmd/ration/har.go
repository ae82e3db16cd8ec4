package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/view"
)

// A harFile is what is read of a HAR file: http://www.softwareishard.com/blog/har-12-spec/.
type harFile struct {
	Log struct {
		Entries []struct {
			StartedDateTime time.Time
			Time            float64 // in milliseconds
			Request         struct{ Method, URL string }
			Response        struct {
				Status  int
				Headers []struct{ Name, Value string }
				Content struct{ Text, Encoding string }
			}
		}
	}
}

// explainHAR says of each response of a HAR file what the fleet would do.
func explainHAR(out io.Writer, in io.Reader, api *ration.Provider, arrived time.Time, asJSON bool) error {
	var har harFile
	if err := json.NewDecoder(in).Decode(&har); err != nil {
		return fmt.Errorf("it is no HAR file: %w", err)
	}
	if len(har.Log.Entries) == 0 {
		return fmt.Errorf("it is no HAR file, or has no entries")
	}
	for _, e := range har.Log.Entries {
		address, err := url.Parse(e.Request.URL)
		if err != nil {
			return fmt.Errorf("entry of %s: the URL is none", e.StartedDateTime.Format(time.RFC3339))
		}
		body := []byte(e.Response.Content.Text)
		if e.Response.Content.Encoding == "base64" {
			if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
				return fmt.Errorf("entry of %s: its body is no base64", e.StartedDateTime.Format(time.RFC3339))
			}
		}
		resp := &http.Response{StatusCode: e.Response.Status, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(string(body))),
			Request: &http.Request{Method: e.Request.Method, URL: address, Header: make(http.Header)}, ProtoMajor: 1, ProtoMinor: 1}
		for _, h := range e.Response.Headers {
			resp.Header.Add(h.Name, h.Value)
		}
		resp.Header.Del("Content-Encoding") // the text is what it was before
		at := arrived
		if at.IsZero() {
			at = e.StartedDateTime.Add(time.Duration(e.Time * float64(time.Millisecond)))
		}
		feedback := api.ReadResponse(resp, at)
		if asJSON {
			if err := json.NewEncoder(out).Encode(struct {
				Method, URL string `json:",omitempty"`
				Status      int
				conclusion
			}{e.Request.Method, withoutQuery(address), e.Response.Status, concluded(feedback)}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out, "%s %s -> %d: %s\n", e.Request.Method, withoutQuery(address), e.Response.Status, inBrief(feedback))
	}
	return nil
}

// withoutQuery returns a URL without what may hold a token.
func withoutQuery(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// inBrief says in a line what a fleet would do.
func inBrief(f ration.Feedback) string {
	var parts []string
	switch {
	case f.DeadToken:
		parts = append(parts, "the token is quarantined")
	case f.Refused:
		said := "refused"
		if f.Reason != "" {
			said += " (" + string(f.Reason) + ")"
		}
		if f.Wait.Known {
			said += ", again in " + view.Round(f.Wait.Value).String()
		}
		if f.Scope != "" {
			said += ", paused: " + string(f.Scope)
		}
		parts = append(parts, said)
	case f.Retryable:
		parts = append(parts, "tried again")
	default:
		parts = append(parts, "served")
	}
	if f.Remaining.Known {
		parts = append(parts, fmt.Sprintf("%d left", f.Remaining.Value))
	}
	return strings.Join(parts, "; ")
}
