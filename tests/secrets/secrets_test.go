package secrets_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"expvar"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/store"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/provider"
)

// What must not be found anywhere.
const (
	theSecret = "s3cret/of+a token"
	theKey    = "k3y-of-the-fleet"
)

// requireHidden fails if the text has the secret or the key, as they are or as
// some verb or encoding has them.
func requireHidden(t *testing.T, text string) {
	t.Helper()
	text = strings.ToLower(text)
	for _, s := range []string{theSecret, theKey} {
		decimal := strings.Trim(fmt.Sprint([]byte(s)), "[]")
		commas := strings.ReplaceAll(decimal, " ", ",")
		goSyntax := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(s)), "[]byte{"), "}")
		for _, form := range []string{s, hex.EncodeToString([]byte(s)), fmt.Sprintf("% x", s), url.QueryEscape(s), url.PathEscape(s),
			base64.StdEncoding.EncodeToString([]byte(s)), decimal, commas, goSyntax} {
			require.NotContains(t, text, strings.ToLower(form))
		}
	}
}

// holders are values that have a token in them.
func holders() map[string]any {
	token := ration.NewKeyedToken([]byte(theKey), theSecret)
	token.Limits = []ration.Limit{ration.PerHour(10)}
	type exported struct{ Token ration.Token }
	type hidden struct{ token ration.Token }
	type deeper struct{ h []hidden }
	budget := rationtest.NewBudget(ration.PerHour(10))
	pool := ration.NewPool(budget, token)
	grant, err := pool.Take(context.Background(), 1)
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"token":       token,
		"pointer":     &token,
		"slice":       []ration.Token{token},
		"map":         map[string]ration.Token{"a": token},
		"key of none": map[string]any{"a": hidden{token}},
		"exported":    exported{token},
		"pointed":     &exported{token},
		"unexported":  hidden{token},
		"pointed too": &hidden{token},
		"deeper":      deeper{[]hidden{{token}}},
		"any":         []any{token, hidden{token}},
		"budget":      budget,
		"pool":        pool,
		"grant":       grant,
		"transport":   &ration.Transport{Pool: pool},
		"client":      &http.Client{Transport: &ration.Transport{Pool: pool}},
		"error":       fmt.Errorf("no slot for %v", token),
	}
}

func TestNoVerbPrintsTheSecret(t *testing.T) {
	for name, holder := range holders() {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%X", "% x", "%q", "%t", "%p", "%T", "%U", "%e", "%08.3f", "%c", "%y", "%!", "%[2]v"} {
				requireHidden(t, fmt.Sprintf(verb, holder))
			}
			// fmt calls no method of what is given to %w and is no error, nor
			// of what stands in a struct's unexported field.
			for _, format := range []string{"%w", "no verb"} {
				requireHidden(t, fmt.Errorf(format, holder).Error())
			}
			requireHidden(t, fmt.Sprint(holder))
		})
	}
}

func TestNoEncoderWritesTheSecret(t *testing.T) {
	for name, holder := range holders() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			text, err := json.Marshal(holder)
			fmt.Fprintf(&out, "%s %v", text, err)
			text, err = xml.Marshal(holder)
			fmt.Fprintf(&out, "%s %v", text, err)
			_ = gob.NewEncoder(&out).Encode(holder)
			log.New(&out, "", 0).Println(holder)
			slog.New(slog.NewTextHandler(&out, nil)).Error("text", "holder", holder)
			slog.New(slog.NewJSONHandler(&out, nil)).Error("text", "holder", holder)
			fmt.Fprint(&out, expvar.Func(func() any { return holder }))
			requireHidden(t, out.String())
		})
	}
}

// A failure is what testify prints of two values, which follows every pointer.
type failure struct{ text string }

func (f *failure) Errorf(format string, args ...any) { f.text += fmt.Sprintf(format, args...) }
func (f *failure) FailNow()                          {}

func TestFailedTestDoesNotPrintTheSecret(t *testing.T) {
	for name, holder := range holders() {
		t.Run(name, func(t *testing.T) {
			var f failure
			zero := reflect.New(reflect.TypeOf(holder)).Elem()
			if zero.Kind() == reflect.Pointer {
				zero.Set(reflect.New(zero.Type().Elem()))
			}
			require.Equal(&f, zero.Interface(), holder)
			require.NotEmpty(t, f.text)
			requireHidden(t, f.text)
		})
	}
}

func TestPanicDoesNotPrintTheSecret(t *testing.T) {
	const env = "RATION_TEST_PANIC"
	if name := os.Getenv(env); name != "" {
		holder := holders()[name]
		transport := &ration.Transport{
			Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(10)), ration.NewKeyedToken([]byte(theKey), theSecret)),
			Base: rationtest.RoundTripper(func(*http.Request) (*http.Response, error) { panic(holder) }),
		}
		_, _ = transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
	}
	for _, name := range []string{"token", "pointer", "unexported", "pool"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), env+"="+name, "GOTRACEBACK=all")
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "panic: ")
		requireHidden(t, string(out))
	}
}

func TestResponseDoesNotShowTheSecret(t *testing.T) {
	for _, attach := range []provider.Attach{provider.Bearer, provider.HeaderNamed("X-Api-Key"), provider.QueryNamed("access_token")} {
		client := &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "0")), Attach: attach,
			Pool:    ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewKeyedToken([]byte(theKey), theSecret)),
			OnGrant: func(req *http.Request, g ration.Grant) { requireHidden(t, fmt.Sprintf("%+v %+v", req, g)) },
			OnRefusal: func(resp *http.Response, g ration.Grant) {
				requireHidden(t, fmt.Sprintf("%+v %+v %+v", resp, resp.Request, g))
			},
		}}
		resp := rationtest.Get(t, client, "http://api.test/?a=1")
		dump, err := httputil.DumpRequest(resp.Request, true)
		require.NoError(t, err)
		requireHidden(t, string(dump))
		requireHidden(t, fmt.Sprintf("%+v %#v %v %v", resp.Request, resp.Request, resp.Request.URL, resp.Request.Context()))
	}
}

// A base that names the URL in its error names the secret in its query.
func TestErrorsOfBaseDoNotShowTheSecret(t *testing.T) {
	cause := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	for _, row := range []struct {
		name   string
		attach provider.Attach
		text   func(*http.Request) string
	}{
		{"URL", provider.QueryNamed("access_token"), func(req *http.Request) string { return req.URL.String() }},
		{"query", provider.QueryNamed("access_token"), func(req *http.Request) string { return fmt.Sprint(req.URL.Query()) }},
		{"header", provider.Bearer, func(req *http.Request) string { return fmt.Sprint(req.Header) }},
		{"path", func(req *http.Request, secret string) error {
			req.URL = req.URL.JoinPath(url.PathEscape(secret))
			return nil
		}, func(req *http.Request) string { return req.URL.String() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			token := ration.NewToken(theSecret)
			client := &http.Client{Transport: &ration.Transport{Attach: row.attach, Retries: ration.RetryPolicy{Max: -1}, Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), token),
				Base: rationtest.RoundTripper(func(req *http.Request) (*http.Response, error) {
					return nil, &url.Error{Op: "Get", URL: row.text(req), Err: cause}
				})}}
			_, err := client.Get("http://api.test/")
			requireHidden(t, fmt.Sprintf("%v %+v %#v %q", err, err, err, err))
			require.ErrorContains(t, err, token.ID())
			require.ErrorContains(t, err, "dial: ")
			// It is the same error to whoever asks what it is.
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.ErrorIs(t, err, cause)
			for below := err; below != nil; below = errors.Unwrap(below) {
				requireHidden(t, fmt.Sprintf("%v %#v", below, below))
			}
			inner := errors.Unwrap(err) // http.Client's own *url.Error is the outermost
			failed, found := errors.AsType[*url.Error](inner)
			require.True(t, found)
			requireHidden(t, fmt.Sprintf("%v %+v %#v", failed, failed, failed.URL))
			require.ErrorIs(t, failed.Err, cause)
			var timeout net.Error
			require.ErrorAs(t, err, &timeout)
			require.True(t, timeout.Timeout())
		})
	}
}

func TestErrorsThatShowNoSecretAreLeftAlone(t *testing.T) {
	broken := errors.New("broken")
	for _, secret := range []string{theSecret, "r"} { // "r" would be found in any text
		transport := &ration.Transport{Pool: ration.NewPool(rationtest.NewBudget(ration.PerHour(5)), ration.NewToken(secret)),
			Base: rationtest.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, broken })}
		_, err := transport.RoundTrip(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		require.ErrorIs(t, err, broken)
	}
}

// Redis is told digests only, by any command of any operation.
func TestRedisSeesNoSecret(t *testing.T) {
	server := redistest.Start(t)
	conn, err := net.Dial("tcp", server.Addr)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "MONITOR\r\n")
	lines := bufio.NewReader(conn)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", line)

	rdb := server.Client(t)
	budget := rationtest.NewBudget(ration.PerHour(3))
	// The timer of a timeout is no part of what is printed.
	budget.Store = &ration.RedisStore{Client: rdb, Timeout: time.Hour}
	keyed := ration.NewKeyedToken([]byte(theKey), theSecret)
	keyed.Account = theSecret + " account"
	pool := ration.NewPool(budget, ration.NewToken(theSecret), keyed)
	client := &http.Client{Transport: &ration.Transport{Base: rationtest.NewAPI(rationtest.Throttling(1, "Retry-After", "600")), Pool: pool}, Timeout: 20 * time.Second}
	for range 8 {
		_, err = client.Get("http://api.test/")
	}
	require.ErrorIs(t, err, ration.ErrExhausted)
	requireHidden(t, err.Error())
	_, err = pool.Remaining(t.Context())
	require.NoError(t, err)
	grant, err := budget.Try(t.Context(), ration.NewToken(theSecret+theSecret), 1)
	require.NoError(t, err)
	require.NoError(t, grant.Cancel(t.Context()))
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	requireHidden(t, strings.Join(keys, " "))
	require.NoError(t, rdb.Echo(t.Context(), "the end").Err())

	var seen strings.Builder
	for line = ""; !strings.Contains(line, `"the end"`); {
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
		seen.WriteString(line)
	}
	for _, command := range []string{"evalsha", keyed.AccountID(), ration.NewToken(theSecret).ID(), "ZADD"} {
		require.Contains(t, strings.ToLower(seen.String()), strings.ToLower(command))
	}
	requireHidden(t, seen.String())
	// To print them is to read what the store's goroutine wrote last: it has ended, and a
	// cancellation takes the lock that it held.
	require.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*Store).serve")
	}, 10*time.Second, time.Millisecond)
	nothing := store.Booking{ID: store.NewBookingID(), Budget: budget.Name}
	require.NoError(t, budget.Store.Cancel(t.Context(), store.CancelRequest{Booking: nothing}))
	// What the store notes beside bookings has ended too, and has given up its lock.
	for range 2 {
		require.NoError(t, budget.Store.(*ration.RedisStore).Settle(t.Context()))
	}
	requireHidden(t, fmt.Sprintf("%+v %#v", budget, budget.Store))
}
