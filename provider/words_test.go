package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// read reads a response with the zero Provider. The header is written as "Name: value", one a line.
func read(status int, head, body string) provider.Feedback {
	h := http.Header{}
	for line := range strings.Lines(head) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ": "); found {
			h.Add(name, value)
		}
	}
	return new(provider.Provider).ReadResponse(&http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, noon)
}

// window says what a window has: limit, remaining, used, length and reset, "-" for what is unknown.
func window(w provider.Window) string {
	number := func(n provider.Optional[int64]) string {
		if !n.Known {
			return "-"
		}
		return fmt.Sprint(n.Value)
	}
	length := func(d provider.Optional[time.Duration]) string {
		if !d.Known {
			return "-"
		}
		return d.Value.String()
	}
	return strings.TrimSpace(w.Name + " " + number(w.Limit) + " " + number(w.Remaining) + " " + number(w.Used) + " " + length(w.Length) + " " + length(w.Reset))
}

// A window is read whatever stands around the usual words, and in whatever form.
func TestWindowsByTheirWords(t *testing.T) {
	for head, want := range map[string][]string{
		"Fitbit-Rate-Limit-Limit: 150\nFitbit-Rate-Limit-Remaining: 0\nFitbit-Rate-Limit-Reset: 1478":                      {"150 0 - - 24m38s"},
		"X-Discogs-Ratelimit: 60\nX-Discogs-Ratelimit-Used: 58\nX-Discogs-Ratelimit-Remaining: 2":                          {"60 2 58 - -"},
		"Bitvavo-Ratelimit-Limit: 1000\nBitvavo-Ratelimit-Remaining: 9\nBitvavo-Ratelimit-ResetAt: 1772452845000":          {"1000 9 - - 45s"},
		"X-Gate-RateLimit-Limit: 200\nX-Gate-RateLimit-Requests-Remain: 199\nX-Gate-RateLimit-Reset-Timestamp: 1772452807": {"200 - - - 7s", "requests - 199 - - -"},
		"X-Sentry-Rate-Limit-Limit: 40\nX-Sentry-Rate-Limit-Remaining: 39\nX-Sentry-Rate-Limit-ConcurrentLimit: 25":        {"40 39 - - -", "concurrent 25 - - - -"},
		"X-Toggl-Quota-Remaining: 0\nX-Toggl-Quota-Resets-In: 1742":                                                        {"- 0 - - 29m2s"},
		"Gw-Ratelimit-Limit: 500\nGw-Ratelimit-Remaining: 0\nGw-Ratelimit-Reset: 14628":                                    {"500 0 - - -"}, // four hours, or 15 seconds
		"X-RateLimit-Limit: 500\nX-RateLimit-Remaining: 0\nX-RateLimit-Window: 30\nX-RateLimit-Reset: 14628":               {"500 0 - 30s 14.628s"},
		"X-RateLimit-Limit: 100\nX-RateLimit-Remaining: 7\nX-RateLimit-Period: 3600":                                       {"100 7 - 1h0m0s -"},
		"X-RateLimit-Limit: 100\nX-RateLimit-Remaining: 7\nX-RateLimit-Window: minute":                                     {"100 7 - 1m0s -"},
		"X-RateLimit-Limit: 150/15m\nX-RateLimit-Remaining: 148":                                                           {"150 148 - 15m0s -"},
		"X-RateLimit-Limit: 100 per minute\nX-RateLimit-Remaining: 7":                                                      {"100 7 - 1m0s -"},
		"X-RateLimit-Remaining: 59/60":         {"60 59 - - -"},
		"X-Shopify-Shop-Api-Call-Limit: 32/40": {"40 8 32 - -"},
		"X-RateLimit-Limit: 1000, 10\nX-RateLimit-Remaining: 991, 2\nX-RateLimit-Reset: 3000, 4":                        {"10 2 - - 4s"},
		"X-RateLimit-Limit: 1,000\nX-RateLimit-Remaining: 5":                                                            {"- 5 - - -"}, // a thousand, or two limits
		"X-RateLimit-Limit: 200,2000\nX-RateLimit-Usage: 14,1999":                                                       {"2000 1 1999 - -"},
		"RateLimit-DailyLimit: 5000\nRateLimit-Remaining: 12":                                                           {"5000 12 - 24h0m0s -"},
		"X-Requests-Remaining: 480\nX-Requests-Used: 20":                                                                {"500 480 20 - -"},
		"X-Reader-Zone1-Limit: 100\nX-Reader-Zone1-Usage: 7":                                                            {"100 93 7 - -"},
		"X-Ratelimit: {\"name\":\"API\",\"period\":10,\"limit\":50,\"remaining\":0,\"until\":\"2026-03-02T12:00:07Z\"}": {"API 50 0 - 10s 7s"},
		"X-Rate-Limit: user-hour-lim:3500;user-hour-rem:500;":                                                           {"user-hour 3500 500 - 1h0m0s -"},
		"X-RateLimit: limit=100, remaining=50, reset=9":                                                                 {"100 50 - - 9s"},
		"X-App-Rate-Limit: 20:1,100:120\nX-App-Rate-Limit-Count: 3:1,4:120":                                             {"20 17 3 1s -", "100 96 4 2m0s -"},
		"X-ESI-Error-Limit-Remain: 99\nX-ESI-Error-Limit-Reset: 34":                                                     {"error - 99 - - 34s"},
		// No windows.
		"X-Pagination-Limit: 50\nX-Pagination-Remaining: 3\nX-Page-Limit: 2\nX-Page-Used: 2": nil,
		"X-Upload-Limit: 10485760":        nil,
		"X-RateLimit-Policy: standard":    nil,
		"X-Beta-RateLimit-Remaining: 0":   nil,
		"X-Ratelimit: {\"limit\":[1,2]}":  nil,
		"X-Ratelimit: {{{{":               nil,
		"X-Rate-Limit: a:1;b:2;c":         nil,
		"X-RateLimit-Limit: 5/2/2026":     nil,
		"X-RateLimit-Limit: 9/fortnights": nil,
	} {
		var got []string
		for _, w := range read(200, head, "").Windows {
			got = append(got, window(w))
		}
		require.Equal(t, want, got, head)
	}
}

// A wait is read under many names, and in words.
func TestWaitsByTheirWords(t *testing.T) {
	in := func(body string) string { return "Content-Type: application/json\n\n" + body }
	for text, want := range map[string]time.Duration{
		"X-Rate-Limit-Retry-After-Seconds: 22688":                        22688 * time.Second,
		"X-Foo-Retry-After-Ms: 1500":                                     1500 * time.Millisecond,
		"X-Foo-Resets-In: 90":                                            90 * time.Second,
		"X-Throttle-Wait-Seconds: 3":                                     3 * time.Second,
		"X-Ratelimit-Retry-After-Contract: 8":                            8 * time.Second,
		in(`{"data":{"next_allowed_at":"2026-03-02T12:00:49Z"}}`):        49 * time.Second,
		in(`{"errors":[{"blockedUntil":1772452860}]}`):                   time.Minute,
		in(`{"msBeforeNext":2500}`):                                      2500 * time.Millisecond,
		in(`{"wait_seconds":"30 seconds"}`):                              30 * time.Second,
		in(`{"limits":[{"resetAt":"2026-03-02T13:00:00Z"}]}`):            time.Hour,
		in(`{"retry_after":5,"reset_at":"2026-03-02T13:00:00Z"}`):        5 * time.Second,
		in("User-rate limit exceeded. Retry after 2026-03-02T12:15:00Z"): 15 * time.Minute,
		in("Blocked until Mon, 02 Mar 2026 12:00:30 GMT."):               30 * time.Second,
		in("Expected available in 12 seconds."):                          12 * time.Second,
		in("try again in 1m20s"):                                         80 * time.Second,
		in("Try again in 1 hour and 5 minutes."):                         65 * time.Minute,
		in("You can try again in an hour"):                               time.Hour,
		in("Your rate limit resets in ~30s."):                            30 * time.Second,
		in("Quota will be replenished in 07:01:20."):                     7*time.Hour + 80*time.Second,
		in("Quota resets at midnight UTC"):                               12 * time.Hour,
		in("Wait for the next minute"):                                   time.Minute,
		in("retry after: 30"):                                            30 * time.Second,
		in("Aguarde 16 segundos para tentar novamente"):                  16 * time.Second,
		in("Inténtelo de nuevo: espere 2 minutos"):                       2 * time.Minute,
		in("Veuillez réessayer dans 45 secondes"):                        45 * time.Second,
		in("Bitte versuchen Sie es in 3 Minuten erneut"):                 3 * time.Minute,
		in("Повторите попытку через 10 секунд"):                          10 * time.Second,
		in("Spróbuj ponownie po 50 minutach i 36 sekundach."):            50*time.Minute + 36*time.Second,
		in(`{"msg":"\u8bf7\u5728 30 \u79d2\u540e\u91cd\u8bd5"}`):         30 * time.Second,
		in("30秒後に再度お試しください"):                                             30 * time.Second,
		"Content-Type: text/html\n\n<html><script>wait(5 seconds)</script><p>Please wait 2 minutes.</p></html>": 2 * time.Minute,
		// No waits.
		in("You may send 100 requests per 60 seconds"):         0,
		in("100 requests in 10 seconds is too many"):           0,
		in("Please wait a few minutes"):                        0,
		in(`{"retry_after":null,"wait":true}`):                 0,
		in(`{"message":"5 retries were made"}`):                0,
		in(`{"created_at":"2026-03-02T13:00:00Z"}`):            0,
		in("Blocked since 2025-03-02T12:15:00Z"):               0,
		in("see https://example.com/retry/5s for a 10 s tour"): 0,
	} {
		head, body, _ := strings.Cut(text, "\n\n")
		f := read(429, head, body)
		require.True(t, f.Refused)
		require.Equal(t, want, f.Wait.Value, text)
		require.Equal(t, want > 0, f.Wait.Known, text)
	}
}

// A limit may be told in words, or in fields.
func TestLimitsInWords(t *testing.T) {
	for body, want := range map[string]string{
		"keep below 100 requests per 1 minute":                         "100 0 - 1m0s -",
		`{"description":"5 per 1 second"}`:                             "5 0 - 1s -",
		`The rate limit "1000 calls in 1 day" was reached.`:            "1000 0 - 24h0m0s -",
		"Max rate limit '100' exceeded with in '20' secs":              "100 0 - 20s -",
		"the hourly limit of 1000 credits has been exceeded":           "1000 0 - 1h0m0s -",
		`{"error":{"limit":3,"period":"second"}}`:                      "3 0 - 1s -",
		`{"rateLimit":2,"rateLimitRemaining":0}`:                       "2 0 - - -",
		"Daily API request limit exceeded.":                            "- - - 24h0m0s -",
		"您每分钟最多访问该接口500次":                                              "500 0 - 1m0s -",
		"Przekroczono limit 20 żądań na godzinę.":                      "20 0 - 1h0m0s -",
		`{"message":"slow down","limit":20}`:                           "",
		"gpt-4 is limited; 3 of your minute and hour quotas are spent": "",
	} {
		got := ""
		if f := read(429, "", body); len(f.Windows) > 0 {
			got = window(f.Windows[0])
		}
		require.Equal(t, want, got, body)
	}
}

// The words of a body outrank its status, whatever that is.
func TestWordsOutrankTheStatus(t *testing.T) {
	const text, asJSON, asXML, html = "Content-Type: text/plain", "Content-Type: application/json", "Content-Type: text/xml", "Content-Type: text/html"
	for _, row := range []struct {
		status     int
		head, body string
		want       provider.Reason
	}{
		{200, asJSON, `{"error":{"type":"Exception","message":"Quota limit exceeded","code":4}}`, provider.ReasonQuota},
		{200, asJSON, `{"error_message":"You have exceeded your rate-limit for this API.","results":[],"status":"OVER_QUERY_LIMIT"}`, provider.ReasonQuota},
		{200, asJSON, `{"errors":{"rateLimit":"Too many requests."},"results":0}`, provider.ReasonQuota},
		{200, asJSON, `{"code":429,"msg":"x"}`, provider.ReasonQuota},
		{200, asJSON, `{"error":{"code":429}}`, provider.ReasonQuota},
		{200, asJSON, `{"success":false,"errors":[{"code":"606","message":"Max rate limit exceeded"}]}`, provider.ReasonQuota},
		{200, asJSON, `{"errors":[{"message":"Complexity budget exhausted","extensions":{"retry_in_seconds":12}}]}`, provider.ReasonQuota},
		{200, asJSON, `{"code":-799,"message":"请求过于频繁，请稍后再试"}`, provider.ReasonQuota},
		{200, text, "Too many requests, please try again later.", provider.ReasonQuota},
		{200, asXML, "<response><error code=\"5\">Request limit exceeded</error></response>", provider.ReasonQuota},
		{200, html, "<html><head><title>429 Too Many Requests</title></head><body>x</body></html>", provider.ReasonQuota},
		// Results that speak of limits.
		{200, asJSON, `{"title":"How we throttle","body":"A rate limit exceeded error is a 429: too many requests."}`, ""},
		{200, asJSON, `{"data":{"comment":"rate limit exceeded, try again in 5 minutes"},"errors":[]}`, ""},
		{200, asJSON, `{"id":7,"status":"ok","message":"rate limit exceeded is what they said"}`, ""},
		{200, asJSON, `{"message":"Welcome. The rate limit is 100 requests per hour.","version":"2"}`, ""},
		{200, asJSON, `{"message":"Too Many Attempts."}`, provider.ReasonQuota},
		{200, asJSON, `{"sid":"a","to":"b","from":"c","body":"d","status":"failed","error_message":"Rate limit exceeded for Channel"}`, ""},
		{200, asJSON, `{"data":[{"error":"too many requests"}]}`, ""},
		{200, html, "<html><head><title>Rate limits</title></head><body>rate limit exceeded</body></html>", ""},
		{200, text, "rate limit exceeded: " + strings.Repeat("a long text about it ", 20), ""},
		{402, asJSON, `{"message":"Your daily points limit of 150 has been reached."}`, provider.ReasonQuota},
		{402, text + "\nX-Foo-Quota-Remaining: 0\nX-Foo-Quota-Resets-In: 60", "Payment Required", provider.ReasonQuota},
		{402, asJSON, `{"error":"Insufficient credits. Add more to continue."}`, provider.ReasonBilling},
		{402, "", "", provider.ReasonBilling},
		{401, asJSON, `{"detail":{"status":"quota_exceeded","message":"This request exceeds your quota"}}`, provider.ReasonQuota},
		{401, asJSON, `{"error":{"message":"API key provided is invalid"}}`, provider.ReasonDeadToken},
		{403, asJSON, `{"error":{"message":"User usage reached"}}`, provider.ReasonQuota},
		{403, html, "<title>SEC.gov | Request Rate Threshold Exceeded</title>", provider.ReasonQuota},
		{403, "X-Mashery-Error-Code: ERR_403_DEVELOPER_OVER_RATE", "<h1>Developer Over Rate</h1>", provider.ReasonQuota},
		{403, asJSON, `{"message":"The user's Drive storage quota has been exceeded."}`, provider.ReasonDenied},
		{403, asJSON, `{"message":"You do not have permission."}`, ""},
		{400, asJSON, `{"message":"limit must not exceed 100"}`, ""},
		{400, asJSON, `{"message":"The file exceeds the maximum size"}`, ""},
		{400, asJSON, `{"code":99991400,"msg":"request trigger frequency limit"}`, provider.ReasonQuota},
		{406, asJSON, `{"message":"Your quota will be renewed in 9 hours"}`, provider.ReasonQuota},
	} {
		f := read(row.status, row.head, row.body)
		require.Equal(t, row.want, f.Reason, "%d %s %s", row.status, row.head, row.body)
		require.Equal(t, row.want.Refuses(), f.Refused, row.body)
	}
}

// A rule of a provider's own is asked though the response says nothing else, and one that can never match is an error.
func TestRulesOfSuccesses(t *testing.T) {
	empty := &provider.Provider{Name: "a", Rules: []provider.MatchRule{{Status: []int{204}, Reason: provider.ReasonQuota}}}
	require.NoError(t, empty.Validate())
	resp := func(status int) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
	}
	require.True(t, empty.NeedsReading(resp(204)))
	require.False(t, empty.NeedsReading(resp(200)))
	require.True(t, empty.ReadResponse(resp(204), noon).Refused)

	byHeader := &provider.Provider{Rules: []provider.MatchRule{{Header: "X-Busy", Equals: "yes", Reason: provider.ReasonOverload}}}
	busy := resp(200)
	require.False(t, byHeader.NeedsReading(busy))
	busy.Header.Set("X-Busy", "yes")
	require.True(t, byHeader.NeedsReading(busy))

	for _, never := range []provider.MatchRule{
		{Status: []int{204}, Contains: "quota"}, {Status: []int{404, 302}, Field: "error"}, {Status: []int{304}, Equals: "a", Contains: "b"},
	} {
		err := (&provider.Provider{Name: "a", Rules: []provider.MatchRule{{Status: []int{429}}, never}}).Validate()
		require.ErrorContains(t, err, `rule 1 of the provider "a" can never match`)
	}
	for _, fine := range []provider.MatchRule{{Status: []int{404}}, {Field: "error"}, {Status: []int{404, 400}, Field: "error"}, {Status: []int{200}, Field: "error"}, {Status: []int{304}, Header: "X-A", Contains: "b"}} {
		require.NoError(t, (&provider.Provider{Rules: []provider.MatchRule{fine}}).Validate())
	}
	require.NoError(t, (*provider.Provider)(nil).Validate())
}

// What looks like a limit or a wait and is not understood is kept, without what may be a secret.
func TestUnread(t *testing.T) {
	f := read(429, "X-Foo-Resets: soon 14628\nX-Quota-Owner: ana@example.com\nX-Limit-Key: Ab1cD2eF3gH4iJ5k\nServer: nginx 1.2", `{"error":{"wait_units":"17 blips","id":5,"hint":"try again when 17 blips are over"},"key":"Ab1cD2eF3gH4iJ5k"}`)
	require.Equal(t, "HTTP/1.1 429 Too Many Requests\r\nX-Foo-Resets: soon 14628\r\nX-Quota-Owner: …\r\nContent-Type: application/json\r\n\r\n"+
		`{"error":{"hint":"try again when 17 blips are over","wait_units":"17 blips"}}`, f.Unread)
	for _, understood := range []provider.Feedback{
		read(429, "", ""), read(429, "Retry-After: 5\nX-Foo-Resets: soon", ""), read(200, "X-Foo-Resets: soon", ""), read(500, "X-Foo-Resets: soon", ""),
		read(429, "X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0", ""), read(429, "Content-Type: application/json", `{"message":"100 requests per minute"}`),
		read(404, "X-Foo-Limit: many", ""),
	} {
		require.Empty(t, understood.Unread)
	}
}

// What an API sends of its own, and errors of a caller, are no refusals, though words of limits stand in them.
func TestNoRefusals(t *testing.T) {
	for _, body := range []string{
		`{"name":"rate_limit","type":"integer","default":60}`, `{"default":"hourly limit"}`, `{"id":7,"status":2,"name":"default","description":"Daily limit for partners"}`,
		`{"statusCode":202,"message":"Queued. You may send 60 requests per minute"}`, `{"code":"DL","name":"daily limit","value":500}`,
		`{"status":3,"name":"nightly sync","retryDelay":30}`, `{"text":"Slow down, Terry"}`, `{"html":{"title":"How we rate limit"}}`,
		`<html><title>Rate limiting</title></html>`, "User-agent: *\n# please slow down\nCrawl-delay: 10",
		`{"message":"retry when the rate limit is exceeded","title":"too many requests"}`,
	} {
		require.Empty(t, read(200, "", body).Reason, body)
	}
	for body, status := range map[string]int{
		`{"errors":["quota is not a number"]}`: 422, `{"error":"usage limit must be greater than 0"}`: 422, `{"error":"Seat limit reached. Upgrade to invite more"}`: 403,
		`{"error":"exceeded the maximum number of tags (10)"}`: 400, `{"message":"name can't be blank","job":{"retry_interval":3600}}`: 422,
		`{"error":"no such job","job":{"retry_after":3600}}`: 409,
	} {
		require.False(t, read(status, "", body).Refused, body)
	}
	require.Equal(t, provider.ReasonLock, read(423, "", `{"error":"Document is being edited, try again in 10 seconds"}`).Reason)
	require.Equal(t, provider.ReasonDeadToken, read(401, "", `{"message":"Invalid API key. A free key has a daily limit of 1000"}`).Reason)
	exhausted := provider.Response{Status: 402, Header: http.Header{"X-Ratelimit-Limit": {"5"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"30"}}, Arrived: noon}
	own := &provider.Provider{Rules: []provider.MatchRule{{Status: []int{402}, Reason: provider.ReasonBilling}}}
	require.Equal(t, provider.ReasonBilling, own.Read(exhausted).Reason)
	require.Equal(t, provider.ReasonQuota, new(provider.Provider).Read(exhausted).Reason)
}

// Numbers that are parts of words, and times of something else, are no waits and no limits.
func TestNoWaits(t *testing.T) {
	for _, body := range []string{
		`{"message":"Please wait and retry (ref 7d41a9)"}`, `{"message":"Please wait and retry: 0f3e-a12m-77"}`, `{"message":"Too many requests. Your access token expires in 3600 seconds"}`,
		`{"message":"Too many requests. 30 days left in trial"}`,
	} {
		require.Equal(t, provider.Some(time.Duration(0)).Value, read(429, "Content-Type: application/json", body).Wait.Value, body)
	}
	for _, head := range []string{
		"X: 1", "X-Preset: 3600", "X-Retry-After-Count: 3", "X-Hits-Limit: 20\nX-Hits-Remaining: 0", "X-Results-Limit: 5\nX-Results-Remaining: 0",
		"X-Storage-Limit: 5000\nX-Storage-Used: 5000", "X-RateLimit-" + strings.Repeat("ms", 1<<19) + ": 1", strings.Repeat("a", 1<<20) + ": 1",
	} {
		f := read(429, head, "")
		require.False(t, f.Wait.Known, "%.40s", head)
		require.Empty(t, f.Windows, "%.40s", head)
	}
	require.Equal(t, 5*time.Minute, read(429, "X-Retry-After-Minutes: 5", "").Wait.Value)
	f := read(200, "X-RateLimit-Limit: 3600/60\nX-RateLimit-Reset: 30", "")
	require.Equal(t, int64(3600), f.Limit.Value)
	require.False(t, f.Remaining.Known)
	f = read(429, "Acme-RateLimit-Limit: 5\nAcme-RateLimit-Remaining: 0\nAcme-RateLimit-Reset: "+noon.Add(2*time.Hour).Format(time.RFC3339), "")
	require.True(t, f.Windows[0].Reset.Known, "it is no number, and cannot be in milliseconds")
	require.Equal(t, provider.ReasonQuota, read(403, "", `<?xml version="1.0" encoding="ISO-8859-1"?><error><message>Rate limit exceeded</message></error>`).Reason)
	require.Equal(t, provider.ReasonQuota, read(403, "", "429 Too Many Requests").Reason)
}

// No secret is left in what was not read, whatever its shape, and it stays short.
func TestUnreadHasNoSecrets(t *testing.T) {
	for _, secret := range []string{
		"1712345678-AbCdEfGhIjKlMnOp", "sk-secret-1700000000-abcdef9x", "ABCDEFGHIJKLMNOP", "4111111111111111", "2001:db8::1", "10.20.30.40",
		"alice@example.com", "https://h/p?api_key=abcdefghijkl&cursor=5", "aBcDeFgHiJkL", "abcdefghijklmnopqrstuvwx", "eyJhbGciOi.eyJzdWIi.c2ln",
	} {
		f := read(429, "X-Next-Retry-Hint: 5 blips "+secret, `{"limits":{"`+secret+`":{"retry_after_x":30}},"next":"5 `+secret+`","limit_hint":"wait 17 blips `+secret+` until 2026"}`)
		require.Contains(t, f.Unread, "17 blips")
		require.NotContains(t, f.Unread, secret)
	}
	require.NotContains(t, read(429, "", `{"credit_card":4111111111111111,"wait_hint":"5 blips"}`).Unread, "4111")
	var head strings.Builder
	for i := range 5000 {
		head.WriteString("X-Limit-Of-" + strings.Repeat("a", i%30) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + ": soon 5\n")
	}
	f := read(429, head.String(), "")
	require.NotEmpty(t, f.Unread)
	require.Less(t, len(f.Unread), 4<<10)
	require.Empty(t, read(400, "", `{"errors":[{"field":"next_date","message":"must be after 2025-01-01"}]}`).Unread)
	require.Empty(t, read(403, "Expires: Thu, 26 Mar 2026 12:00:00 GMT\nAccess-Control-Allow-Origin: a1", `{"error":"forbidden"}`).Unread)
}
