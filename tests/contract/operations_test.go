package contract_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
	"github.com/ration-go/ration/store/storetest"
)

// The user that docs/howto/run-redis.md makes can do all that a store does. All rules share one store.
func TestTheDocumentedUserIsEnough(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	kept := &ration.RedisStore{Client: documentedUser(t, server, "ration")(t), Timeout: time.Minute}
	for _, log := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		t.Run(log.String(), func(t *testing.T) {
			storetest.RunLog(t, log, func(*testing.T) ration.Store { return kept })
		})
	}
}

// The reading user that docs/howto/run-redis.md makes is told all, and can book nothing.
func TestTheDocumentedReaderIsEnough(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	writer := &ration.RedisStore{Client: documentedUser(t, server, "ration")(t)}
	reader := &ration.RedisStore{Client: documentedUser(t, server, "ration-reader")(t)}
	var limits []ration.Limit
	for _, algorithm := range []ration.Algorithm{ration.StreamLog, ration.FixedWindow, ration.SlidingWindow, ration.SubWindows, ration.GCRA} {
		limits = append(limits, ration.PerHour(60).Using(algorithm))
	}
	book := func(s *ration.RedisStore, token string, limits ...ration.Limit) error {
		b := &ration.Budget{Name: "x", Limits: limits, Store: s}
		_, err := b.Wait(t.Context(), ration.NewToken(token), 1)
		return err
	}
	require.NoError(t, book(writer, "one", limits...))
	require.NoError(t, book(writer, "two", ration.PerHour(60)))
	_, err := writer.Pause(t.Context(), store.PauseRequest{Budget: "x", For: time.Hour})
	require.NoError(t, err)
	require.NoError(t, writer.Settle(t.Context()))

	budgets, err := reader.Budgets(t.Context())
	require.NoError(t, err)
	require.Len(t, budgets, 1)
	told, err := reader.Describe(t.Context(), budgets[0].Name)
	require.NoError(t, err)
	require.Len(t, told.Accounts, 2)
	require.Len(t, told.Pauses, 1)
	require.ErrorIs(t, book(reader, "three", ration.PerHour(60)), ration.ErrStoreUnavailable)
}

// documentedUser makes a user as docs/howto/run-redis.md says, and returns what connects as that.
func documentedUser(t *testing.T, server *redistest.Server, name string) func(*testing.T) *redis.Client {
	t.Helper()
	page, err := os.ReadFile("../../docs/howto/run-redis.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^ACL SETUSER ` + name + ` (.*)$`).FindSubmatch(page)
	require.NotNil(t, line)
	args := []any{"ACL", "SETUSER", name}
	for _, rule := range strings.Fields(strings.Replace(string(line[1]), "PASSWORD", "pw", 1)) {
		args = append(args, rule)
	}
	require.NoError(t, server.Client(t).Do(t.Context(), args...).Err())
	return func(t *testing.T) *redis.Client {
		options := *server.Client(t).Options()
		options.Username, options.Password = name, "pw"
		client := redis.NewClient(&options)
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		return client
	}
}
