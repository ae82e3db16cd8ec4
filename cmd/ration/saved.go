package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ration-go/ration"
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

// An exchange is a response that was saved, when it arrived, and what it is called.
type exchange struct {
	name string
	resp *http.Response
	at   time.Time
}

// readHAR returns the responses of a HAR file. Arrived is when all came; zero: when the file says.
func readHAR(in io.Reader, arrived time.Time) (all []exchange, err error) {
	var har harFile
	if err := json.NewDecoder(in).Decode(&har); err != nil {
		return nil, fmt.Errorf("it is no HAR file: %w", err)
	}
	if len(har.Log.Entries) == 0 {
		return nil, fmt.Errorf("it is no HAR file, or has no entries")
	}
	for _, e := range har.Log.Entries {
		address, err := url.Parse(e.Request.URL)
		if err != nil {
			return nil, fmt.Errorf("entry of %s: the URL is none", e.StartedDateTime.Format(time.RFC3339))
		}
		body := []byte(e.Response.Content.Text)
		if e.Response.Content.Encoding == "base64" {
			if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
				return nil, fmt.Errorf("entry of %s: its body is no base64", e.StartedDateTime.Format(time.RFC3339))
			}
		}
		resp := &http.Response{StatusCode: e.Response.Status, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(string(body))), ContentLength: int64(len(body)),
			Request: &http.Request{Method: e.Request.Method, URL: address, Header: make(http.Header)}, ProtoMajor: 1, ProtoMinor: 1}
		for _, h := range e.Response.Headers {
			resp.Header.Add(h.Name, h.Value)
		}
		resp.Header.Del("Content-Encoding") // the text is what it was before
		at := arrived
		if at.IsZero() {
			at = e.StartedDateTime.Add(time.Duration(e.Time * float64(time.Millisecond)))
		}
		all = append(all, exchange{e.Request.Method + " " + withoutQuery(address), resp, at})
	}
	return all, nil
}

// responsesIn returns the responses of a folder, each in a file of its own, as "curl -i" prints them, in the order of their names.
func responsesIn(folder string, arrived time.Time) (all []exchange, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		in, err := os.Open(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		resp, err := readResponse(in)
		_ = in.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		all = append(all, exchange{entry.Name(), resp, arrivalOf(resp, arrived)})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no responses: save each in a file of its own, as curl -i prints it", folder)
	}
	return all, nil
}

// explainAll prints a line for each response, and what was not understood.
func explainAll(out io.Writer, all []exchange, api *ration.Provider, asJSON bool) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(table, "STATUS\tRESPONSE\tREAD AS\tWHAT RATION DOES\tLEFT")
	}
	var notUnderstood []string
	for _, e := range all {
		feedback := api.ReadResponse(e.resp, e.at)
		if asJSON {
			if err := json.NewEncoder(out).Encode(struct {
				Response string
				Status   int
				conclusion
			}{e.name, e.resp.StatusCode, concluded(e.resp, api, feedback)}); err != nil {
				return err
			}
			continue
		}
		does := consequenceOf(e.resp, api, &feedback)
		read, left := "served", ""
		switch {
		case feedback.Reason != "":
			read = string(feedback.Reason)
		case e.resp.StatusCode >= 400:
			read = "an error"
		}
		if feedback.Remaining.Known {
			left = strconv.FormatInt(feedback.Remaining.Value, 10)
			if feedback.Limit.Known {
				left += " of " + strconv.FormatInt(feedback.Limit.Value, 10)
			}
		}
		fmt.Fprintln(table, strings.TrimRight(fmt.Sprintf("%d\t%s\t%s\t%s\t%s", e.resp.StatusCode, e.name, read, does.inShort(), left), "\t"))
		for _, line := range unread(&feedback) {
			notUnderstood = append(notUnderstood, e.name+": "+line)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(notUnderstood) > 0 {
		fmt.Fprintln(out, "\nNot understood:")
		for _, line := range notUnderstood {
			fmt.Fprintln(out, "  "+line)
		}
	}
	return nil
}

// withoutQuery returns a URL without what may hold a token.
func withoutQuery(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
