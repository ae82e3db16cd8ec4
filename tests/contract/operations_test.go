package contract_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redistest"
	"github.com/ration-go/ration/store/storetest"
)

// The user that docs/operations.md makes can do all that a store does.
func TestTheDocumentedUserIsEnough(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^ACL SETUSER ration (.*)$`).FindSubmatch(page)
	require.NotNil(t, line)
	server := redistest.Start(t)
	admin := server.Client(t)
	args := []any{"ACL", "SETUSER", "ration"}
	for _, rule := range strings.Fields(strings.Replace(string(line[1]), "PASSWORD", "pw", 1)) {
		args = append(args, rule)
	}
	require.NoError(t, admin.Do(t.Context(), args...).Err())
	for _, log := range []ration.Algorithm{ration.SlidingLog, ration.StreamLog} {
		t.Run(log.String(), func(t *testing.T) {
			storetest.RunLog(t, log, func(t *testing.T) ration.Store {
				require.NoError(t, admin.FlushAll(t.Context()).Err())
				options := *server.Client(t).Options()
				options.Username, options.Password = "ration", "pw"
				client := redis.NewClient(&options)
				t.Cleanup(func() { require.NoError(t, client.Close()) })
				return &ration.RedisStore{Client: client}
			})
		})
	}
}
