package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// longest is how many bytes of a response are read. A provider.Provider reads fewer.
const longest = 16 << 20

// readResponse reads what curl -i prints. If curl printed several responses, because of
// redirects, a proxy or 100 Continue, it returns the last. Lines end in CRLF or LF, and
// the body may be empty.
func readResponse(in io.Reader) (*http.Response, error) {
	text, err := io.ReadAll(io.LimitReader(in, longest))
	if err != nil {
		return nil, err
	}
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), " \t\r\n")
	if !isStatusLine(text) {
		if told, found := quotedResponse(text); found {
			text = told
		}
	}
	if len(text) == 0 {
		return nil, errors.New("there is no response: pipe the output of curl -i into it, or name a file")
	}
	for {
		resp, rest, err := readHead(text)
		if err != nil {
			return nil, err
		}
		next := bytes.TrimLeft(rest, "\r\n")
		if !isStatusLine(next) || !mayBeFollowed(resp) {
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(rest)), int64(len(rest))
			if len(rest) == 0 {
				resp.Body = http.NoBody
			}
			return resp, nil
		}
		text = next
	}
}

// quotedResponse returns the response that a line of a log has, which tells of a refusal that was not understood.
func quotedResponse(text []byte) (response []byte, found bool) {
	at := bytes.Index(text, []byte(`"HTTP/`))
	if at < 0 {
		return nil, false
	}
	quoted, inJSON := string(text[at:]), at > 0 && text[at-1] == '\\'
	if inJSON { // which quotes it once more
		quoted = `"\` + quoted
	}
	prefix, err := strconv.QuotedPrefix(quoted)
	if err != nil {
		return nil, false
	}
	told, err := strconv.Unquote(prefix)
	if err == nil && inJSON {
		return quotedResponse([]byte(told))
	}
	return []byte(told), err == nil
}

// mayBeFollowed reports whether curl may have printed another response after the head of
// this one: after an interim status, a redirect or a challenge it prints no body.
func mayBeFollowed(resp *http.Response) bool {
	status := resp.StatusCode
	return status < 200 || status < 400 && resp.Header.Get("Location") != "" || status == 401 || status == 407 ||
		status == 200 && len(resp.Header) == 0 // a proxy's "Connection established"
}

func isStatusLine(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	version, rest, found := strings.Cut(string(line), " ")
	status, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	_, err := strconv.Atoi(status)
	return found && strings.HasPrefix(version, "HTTP/") && len(status) == 3 && err == nil
}

// readHead reads a status line and a header, and returns what follows.
func readHead(text []byte) (resp *http.Response, rest []byte, err error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	if !isStatusLine(text) {
		return nil, nil, fmt.Errorf("the first line is %q: it must be a status line such as HTTP/2 429; print the header with curl -i", short(line))
	}
	fields := strings.Fields(string(line))
	status, _ := strconv.Atoi(fields[1])
	resp = &http.Response{Status: strings.Join(fields[1:], " "), StatusCode: status, Proto: fields[0], Header: make(http.Header)}
	for number := 2; len(rest) > 0; number++ {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 {
			return resp, rest, nil
		}
		name, value, found := strings.Cut(string(line), ":")
		if !found || name == "" || strings.ContainsAny(name, " \t") {
			return nil, nil, fmt.Errorf("line %d is %q: it must be a header such as Retry-After: 5, or empty before the body", number, short(line))
		}
		resp.Header.Add(name, strings.TrimSpace(value))
	}
	return resp, nil, nil
}

func short(line []byte) string {
	line = bytes.TrimRight(line, "\r")
	return string(line[:min(len(line), 60)])
}
