package retries_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// A source is one of the token "ann", whose answers a test sets.
type source struct {
	mu     sync.Mutex
	asked  []time.Duration // since the test began
	begun  time.Time
	answer func(ctx context.Context) (string, time.Time, error)
}

func newSource(answer func(ctx context.Context) (string, time.Time, error)) *source {
	return &source{begun: time.Now(), answer: answer}
}

func (s *source) token() ration.Token {
	return ration.TokenFrom("ann", func(ctx context.Context) (string, time.Time, error) {
		s.mu.Lock()
		s.asked = append(s.asked, time.Since(s.begun))
		answer := s.answer
		s.mu.Unlock()
		return answer(ctx)
	})
}

func (s *source) set(answer func(ctx context.Context) (string, time.Time, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *source) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func gives(secret string) func(context.Context) (string, time.Time, error) {
	return func(context.Context) (string, time.Time, error) { return secret, time.Time{}, nil }
}

var errBroken = errors.New("the auth server is down")

func fails(context.Context) (string, time.Time, error) { return "", time.Time{}, errBroken }

// crawler returns a client of a provider that serves every token, and what it has asked. Events of
// sources are noted.
func crawler(limit ration.Limit, events *[]ration.EventKind, tokens ...ration.Token) (*http.Client, *rationtest.API) {
	b := rationtest.NewBudget(limit)
	b.OnEvent = func(e ration.Event) {
		if e.Kind == ration.SourceFailed || e.Kind == ration.SourceBack {
			*events = append(*events, e.Kind)
		}
	}
	api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) { return rationtest.Served.To(req), nil })
	return &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, tokens...)}}, api
}

// A source that ignores its context, as that of an oauth2.TokenSource must, is left after a minute,
// and is not asked again before it has returned.
func TestASourceThatHangsHoldsNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newSource(func(context.Context) (string, time.Time, error) {
			<-release
			return "late", time.Time{}, nil
		})
		var events []ration.EventKind
		client, api := crawler(ration.PerHour(100_000), &events, s.token(), ration.NewToken("b"))
		var waits sync.WaitGroup
		begun := time.Now()
		for range 10 {
			waits.Go(func() { rationtest.Get(t, client, "http://api.test/") })
		}
		waits.Wait()
		require.LessOrEqual(t, time.Since(begun), time.Minute+time.Second)
		for range 1000 {
			begun := time.Now()
			rationtest.Get(t, client, "http://api.test/")
			require.Less(t, time.Since(begun), 100*time.Millisecond)
			time.Sleep(time.Second)
		}
		require.Len(t, s.times(), 1)
		close(release)
		time.Sleep(2 * time.Minute)
		for range 4 {
			rationtest.Get(t, client, "http://api.test/")
		}
		require.Len(t, api.TimesOf("late"), 2)
		require.Equal(t, []ration.EventKind{ration.SourceFailed, ration.SourceBack}, events)
	})
}

// Who waits long for another token uses the token whose source is back.
func TestOneFailureOfASourceDoesNotSendARequestAwayForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(fails)
		var events []ration.EventKind
		client, api := crawler(rationtest.Every(3600), &events, s.token(), ration.NewToken("b"))
		rationtest.Get(t, client, "http://api.test/") // b is spent
		time.AfterFunc(500*time.Millisecond, func() { s.set(gives("secret")) })
		begun := time.Now()
		rationtest.Get(t, client, "http://api.test/")
		require.LessOrEqual(t, time.Since(begun), 2*time.Second)
		require.Equal(t, []string{"b", "secret"}, api.Tokens())
		require.Equal(t, []ration.EventKind{ration.SourceFailed, ration.SourceBack}, events)
	})
}

// Of two tokens of one account the other one is used.
func TestTheOtherTokenOfTheAccountIsUsedWhileASourceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann, bob := newSource(fails).token(), ration.NewToken("bob")
		ann.Account, bob.Account = "both", "both"
		var events []ration.EventKind
		client, api := crawler(ration.PerHour(1000), &events, ann, bob)
		for range 20 {
			rationtest.Get(t, client, "http://api.test/")
			time.Sleep(100 * time.Millisecond)
		}
		require.Len(t, api.TimesOf("bob"), 20)
	})
}

// A source that fails for long is asked a few times a minute, whatever the number of requests.
func TestASourceThatFailsIsAskedWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(fails)
		var events []ration.EventKind
		client, _ := crawler(ration.PerHour(100_000), &events, s.token(), ration.NewToken("b"))
		for range 6000 { // 10 minutes
			rationtest.Get(t, client, "http://api.test/")
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, len(s.times()), 16)
		require.GreaterOrEqual(t, len(s.times()), 13)
		require.Equal(t, []ration.EventKind{ration.SourceFailed}, events)
	})
}

// With no token left the caller gets an error that says so, and why.
func TestTheFailureOfASourceIsACauseOfNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []ration.EventKind
		client, _ := crawler(ration.PerHour(1000), &events, newSource(fails).token())
		_, err := client.Do(rationtest.NewRequest(t, http.MethodGet, "http://api.test/", nil))
		require.ErrorIs(t, err, ration.ErrNoToken)
		require.ErrorIs(t, err, errBroken)
		none, is := errors.AsType[*ration.NoTokenError](err)
		require.True(t, is)
		require.ErrorIs(t, none.Tokens[0].Err, errBroken)
		require.Contains(t, err.Error(), "gave no secret: the auth server is down")
		require.NotContains(t, err.Error(), "revoked")
	})
}

// A request that refreshes a secret because it expires, while another one has it refreshed in vain
// because it was rejected, is sent.
func TestARefreshAtTheEndOfASecretsLifeMeetsOneBecauseOfARejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(func(context.Context) (string, time.Time, error) {
			time.Sleep(time.Second)
			return "same", time.Now().Add(20 * time.Second), nil
		})
		b := rationtest.NewBudget(ration.PerHour(100_000))
		api := rationtest.NewAPI(func(_ int, req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/private" {
				return rationtest.Unauthorized.To(req), nil
			}
			return rationtest.Served.To(req), nil
		})
		client := &http.Client{Transport: &ration.Transport{Base: api, Pool: ration.NewPool(b, s.token())}}
		var waits sync.WaitGroup
		for i := range 600 {
			for _, path := range []string{"/private", "/"} {
				waits.Go(func() {
					want := map[string]int{"/": http.StatusOK, "/private": http.StatusUnauthorized}[path]
					require.Equal(t, want, rationtest.Get(t, client, "http://api.test"+path).StatusCode, "request %d", i)
				})
			}
			time.Sleep(100 * time.Millisecond)
		}
		waits.Wait()
	})
}
