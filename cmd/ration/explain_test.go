package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/samples"
	"github.com/ration-go/ration/provider/presets"
)

var redraw = flag.Bool("redraw", false, "update testdata")

func answers(t testing.TB) []samples.Sample {
	all, err := samples.All()
	require.NoError(t, err)
	return all
}

// ask runs the command, and returns what it printed.
func ask(stdin string, args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(args, strings.NewReader(stdin), &o, &e)
	return status, o.String(), e.String()
}

func TestExplainConcludesWhatTheSamplesExpect(t *testing.T) {
	for _, s := range answers(t) {
		args := []string{"explain", "-json", "-provider", s.Provider, "-at", s.Now.Format("2006-01-02T15:04:05.999Z07:00")}
		for _, raw := range []string{s.Raw(), strings.ReplaceAll(s.Raw(), "\r\n", "\n")} {
			status, out, errs := ask(raw, args...)
			require.Zero(t, status, "%s: %s", s.ID, errs)
			var got samples.Conclusion
			require.NoError(t, json.Unmarshal([]byte(out), &got), s.ID)
			require.Empty(t, s.Faults(got), "%s: %s", s.ID, out)
		}
	}
}

func TestExplainPrintsExactlyTheseFields(t *testing.T) {
	_, out, _ := ask("HTTP/1.1 204 No Content\r\n\r\n", "explain", "-json")
	require.Equal(t, `{"refused":false,"reason":"","limit":null,"remaining":null,"remaining_percent":null,"wait_s":null,"cooldown_s":null,`+
		`"scope":null,"dead_token":false,"retryable":false,"does":{"outcome":"returns","for_s":null,"at_most_s":null,"other_account":false}}`+"\n", out)
}

// The files in testdata have what is printed in words. To update them:
//
//	go test ./cmd/ration -run TestExplainInWords -redraw
func TestExplainInWords(t *testing.T) {
	golden := map[string]bool{"S01": true, "S06": true, "S11": true, "S15": true, "S16": true, "S27": true, "S39": true, "S45": true, "S57": true, "S66": true,
		"S76": true, "S87": true, "S94": true, "S98": true, "S106": true, "S117": true}
	for _, s := range answers(t) {
		if !golden[s.ID] {
			continue
		}
		status, out, errs := ask(s.Raw(), "explain", "-provider", s.Provider, "-at", s.Now.Format("2006-01-02T15:04:05.999Z07:00"))
		require.Zero(t, status, errs)
		testkit.Golden(t, filepath.Join("testdata", s.ID+".txt"), out, *redraw)
	}
}

// What is printed is what the Transport does, and not what the response asks for.
func TestExplainSaysWhatTheTransportDoes(t *testing.T) {
	for _, row := range []struct{ response, provider, says string }{
		{"429\nRetry-After: 86400\n", "generic", "the account rests for 1h, by MaxCooldown"},
		{"429\nRetry-After: 86400\n", "generic", "another account's token is used at once"},
		{"429\n", "generic", "the account rests for 1s, and twice as long after each refusal, up to 1h"},
		{"429\nRetry-After: 5\n", "spotify", "every account rests for 5s"},
		{"429\nRetry-After: 5\n", "spotify", "another account's token does not help"},
		{"403\nContent-Type: application/json\n\n" + `{"error":{"errors":[{"reason":"quotaExceeded"}]}}`, "youtube", "every account rests for 20h"},
		{"503\nRetry-After: 5\n", "generic", "the endpoint, for every account, rests for 5s"},
		{"500\n", "generic", "the request rests for 1s"},
		{"401\n", "generic", "another token is tried"},
		{"402\n", "generic", "the token is quarantined for 1h"},
		{"404\n", "generic", "the caller gets the response"},
		{"200\nRetry-After: 38\n", "generic", "the account rests for 38s"},
		{"200\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 7\n", "generic", "the account rests for 7s: nothing is left"},
	} {
		status, out, errs := ask("HTTP/1.1 "+row.response, "explain", "-provider", row.provider, "-at", "2026-03-02T12:00:00Z")
		require.Zero(t, status, errs)
		require.Contains(t, out, row.says, row.response)
	}
}

// What was not understood is printed, and so is what a line of a log tells of it.
func TestExplainPrintsWhatWasNotUnderstood(t *testing.T) {
	const response = "HTTP/1.1 429 Too Many Requests\r\nX-Foo-Resets: soon 14628\r\nAuthorization-Limit: Ab1cD2eF3gH4iJ5k\r\n\r\n" + `{"error":{"wait_units":"17 blips","id":5}}`
	_, out, _ := ask(response, "explain")
	require.Contains(t, out, "unread     X-Foo-Resets: soon 14628\n")
	require.Contains(t, out, `unread     {"error":{"wait_units":"17 blips"}}`)
	require.NotContains(t, out, "Ab1cD2eF3gH4iJ5k")

	f := presets.Generic().ReadResponse(parsedResponse(t, response), time.Now())
	event := ration.Event{Kind: ration.LimitUnclear, Budget: "b", Account: "a", Cause: strconv.Quote(f.Unread)}
	inJSON, err := json.Marshal(map[string]string{"msg": event.String()})
	require.NoError(t, err)
	for _, line := range []string{event.String(), "12:00 WARN " + event.String() + " and more", string(inJSON)} {
		status, again, errs := ask(line, "explain")
		require.Zero(t, status, "%s: %s", line, errs)
		require.Contains(t, again, "unread     X-Foo-Resets: soon 14628\n", line)
	}
}

func parsedResponse(t *testing.T, text string) *http.Response {
	resp, err := readResponse(strings.NewReader(text))
	require.NoError(t, err)
	return resp
}

// A folder of responses is a table, with what was not understood below it.
func TestExplainReadsAFolder(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a.txt": "HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 9\r\n\r\n{}", "b.txt": "HTTP/1.1 429\r\nX-Foo-Resets: soon 14628\r\n\r\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	_, out, _ := ask("", "explain", folder)
	require.Equal(t, "STATUS  RESPONSE  READ AS  WHAT RATION DOES  LEFT\n"+
		"200     a.txt     served                     9 of 10\n"+
		"429     b.txt     quota    the account rests, 1s and longer\n\nNot understood:\n  b.txt: X-Foo-Resets: soon 14628\n", out)
	status, _, errs := ask("", "explain", t.TempDir())
	require.Equal(t, 1, status)
	require.Contains(t, errs, "has no responses: save each in a file of its own")
}

// Bodies repeat keys and addresses, which only the caller may see.
func TestExplainPrintsNoSecretOfABody(t *testing.T) {
	for _, s := range answers(t) {
		if s.ID != "S98" && s.ID != "S86" {
			continue
		}
		for _, mode := range [][]string{{"-json"}, nil} {
			_, out, _ := ask(s.Raw(), append([]string{"explain", "-provider", s.Provider}, mode...)...)
			require.NotContains(t, out, "65.93.252.175")
			require.NotContains(t, out, "org-x")
		}
	}
}

func TestExplainReadsTheLastResponse(t *testing.T) {
	const last = "HTTP/2 429 \r\nretry-after: 7\r\n\r\n{}"
	for title, raw := range map[string]string{
		"100 Continue":                 "HTTP/1.1 100 Continue\r\n\r\n" + last,
		"a redirect":                   "HTTP/1.1 301 Moved Permanently\r\nLocation: /b\r\n\r\n" + last,
		"two redirects":                "HTTP/1.1 301 M\r\nLocation: /b\r\n\r\nHTTP/2 302 \r\nlocation: /c\r\n\r\n" + last,
		"a proxy":                      "HTTP/1.1 200 Connection established\r\n\r\n" + last,
		"a challenge":                  "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest\r\n\r\n" + last,
		"early hints":                  "HTTP/2 103 \r\nlink: </a>\r\n\r\n" + last,
		"empty lines before":           "\n\r\n" + last,
		"a mark of the byte order":     "\xef\xbb\xbf" + last,
		"no body, and no line behind":  "HTTP/1.1 429 Too Many Requests\nRetry-After: 7",
		"HTTP/3":                       "HTTP/3 429\nretry-after: 7\n\n",
		"another response in the body": last + "HTTP/1.1 200 OK\r\n\r\n",
	} {
		status, out, errs := ask(raw, "explain", "-json")
		require.Zero(t, status, "%s: %s", title, errs)
		require.Contains(t, out, `"wait_s":7,`, title)
	}
}

// Without -at the time of arrival is the response's Date.
func TestExplainTakesTheDateForTheArrival(t *testing.T) {
	_, out, _ := ask("HTTP/2 429\ndate: Mon, 05 Aug 2019 09:27:00 GMT\nretry-after: Mon, 05 Aug 2019 09:27:05 GMT\n\n", "explain", "-json")
	require.Contains(t, out, `"wait_s":5,`)
}

func TestExplainListsTheProviders(t *testing.T) {
	status, out, _ := ask("", "explain", "-provider", "list")
	require.Zero(t, status)
	require.Equal(t, presets.Names(), strings.Fields(out))
}

func TestExplainSaysWhatToChange(t *testing.T) {
	for _, test := range []struct {
		stdin  string
		args   []string
		status int
		says   string
	}{
		{"", nil, 2, `name a command: "ration -h" lists them`},
		{"", []string{"inspect"}, 2, `there is no command "inspect"`},
		{"", []string{"explain"}, 1, "there is no response: pipe the output of curl -i"},
		{"{}", []string{"explain"}, 1, "must be a status line such as HTTP/2 429"},
		{"HTTP/2 429\nnonsense\n", []string{"explain"}, 1, `line 2 is "nonsense"`},
		{"", []string{"explain", "-provider", "gihub"}, 2, "did you mean github?"},
		{"", []string{"explain", "-provider", "twitter"}, 2, "did you mean x?"},
		{"", []string{"explain", "-provider", "zzzzzzzz"}, 2, "there are " + strings.Join(presets.Names()[:2], ", ")},
		{"", []string{"explain", "-at", "noon"}, 2, "write it as 2026-01-15T12:00:00Z"},
		{"", []string{"explain", "-nonsense"}, 2, "not defined: -nonsense"},
		{"", []string{"explain", "no-such-file"}, 2, "no-such-file"},
		{"", []string{"explain", "a", "b"}, 2, "name one file: there are 2"},
	} {
		status, out, errs := ask(test.stdin, test.args...)
		require.Equal(t, test.status, status, "%q", test.args)
		require.Empty(t, out)
		require.Contains(t, errs, test.says, "%q", test.args)
	}
	status, out, _ := ask("", "explain", "-h")
	require.Zero(t, status)
	require.Contains(t, out, "usage: ration explain")
	var o, e bytes.Buffer
	require.Equal(t, 1, run([]string{"explain"}, iotest.ErrReader(errors.New("cut")), &o, &e))
	require.Contains(t, e.String(), "cut")
}

func TestExplainReadsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answer")
	require.NoError(t, os.WriteFile(file, []byte("HTTP/2 429\nretry-after: 7\n\n"), 0o600))
	_, out, _ := ask("", "explain", "-json", file)
	require.Contains(t, out, `"wait_s":7,`)
}

// Any input gets an answer or an error.
func FuzzExplain(f *testing.F) {
	for _, s := range answers(f) {
		f.Add(s.Raw(), s.Provider)
	}
	f.Fuzz(func(t *testing.T, raw, provider string) {
		if provider == "list" || strings.HasPrefix(provider, "-") {
			provider = "generic"
		}
		status, out, errs := ask(raw, "explain", "-json", "-at", "2026-01-15T12:00:00Z", "-provider", provider)
		if status != 0 {
			require.Empty(t, out)
			require.NotEmpty(t, errs)
			return
		}
		require.True(t, json.Valid([]byte(out)), out)
	})
}
