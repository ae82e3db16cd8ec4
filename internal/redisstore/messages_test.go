package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// An error of the store says what to change.
func TestErrorsSayWhatToChange(t *testing.T) {
	locked := redistest.Start(t, "--requirepass", "secret")
	full := redistest.Start(t, "--maxmemory", "100kb", "--maxmemory-policy", "noeviction")
	few := redistest.Start(t, "--maxclients", "3")
	for few.Client(t).Ping(t.Context()).Err() == nil { // each keeps a connection
	}
	limited := redistest.Start(t)
	require.NoError(t, limited.Client(t).Do(t.Context(), "ACL", "SETUSER", "ration", "on", ">pw", "~*", "&*", "+@all", "-pexpire").Err())
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", "1", "--replica-serve-stale-data", "yes")
	idle := redistest.Start(t)
	for name, row := range map[string]struct {
		options *redis.Options
		says    string
	}{
		"no password":      {&redis.Options{Addr: locked.Addr}, "set Password"},
		"a wrong password": {&redis.Options{Addr: locked.Addr, Password: "wrong"}, "Username and Password"},
		"no memory":        {&redis.Options{Addr: full.Addr}, "maxmemory"},
		"few clients":      {&redis.Options{Addr: few.Addr}, "maxclients"},
		"no permission":    {&redis.Options{Addr: limited.Addr, Username: "ration", Password: "pw"}, "\"Rights\""},
		"a full pool":      {&redis.Options{Addr: idle.Addr, PoolSize: 1, PoolTimeout: time.Millisecond}, "PoolSize"},
		"a replica":        {&redis.Options{Addr: replica.Addr}, "primary"},
	} {
		t.Run(name, func(t *testing.T) {
			row.options.DialerRetries, row.options.MaxRetries, row.options.DisableIdentity = 1, -1, true
			client := redis.NewClient(row.options)
			defer client.Close()
			if row.options.PoolSize == 1 {
				other := client.Conn()
				defer other.Close()
				require.NoError(t, other.Ping(t.Context()).Err())
			}
			b := &ration.Budget{Name: redistest.Name(t), Limits: []ration.Limit{ration.PerHour(10)}, Store: &ration.RedisStore{Client: client}, RetryStoreFor: -1}
			_, err := b.Wait(context.Background(), ration.NewToken("a"), 1)
			require.Error(t, err)
			t.Log(err)
			require.ErrorContains(t, err, row.says)
			if name == "no permission" {
				require.Empty(t, limited.Client(t).Keys(t.Context(), "*").Val(), "keys that never expire")
			}
		})
	}
}

// A client that the program has closed answers never again: nobody waits for it for 30 s.
func TestAClosedClientIsNoOutage(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	require.NoError(t, client.Close())
	var told []ration.Event
	b := &ration.Budget{Name: redistest.Name(t), Limits: []ration.Limit{ration.PerHour(10)}, Store: &ration.RedisStore{Client: client},
		OnEvent: func(e ration.Event) { told = append(told, e) }}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	_, err := b.Wait(ctx, ration.NewToken("a"), 1)
	require.ErrorContains(t, err, "RedisStore.Client was closed")
	require.NoError(t, ctx.Err())
	require.Empty(t, told)
}
