package redisstore

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

var _ redis.Error = serverError("")

// What a command in a script failed with stands behind the place in the script before Redis 7.0.
func TestErrorsOfScriptsAreReadAsRedis6WritesThem(t *testing.T) {
	const before = "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:146: "
	for text, temporary := range map[string]bool{
		before + "@user_script: 146: -OOM command not allowed when used memory > 'maxmemory'.":      true,
		before + "@user_script: 146: -READONLY You can't write against a read only replica.":        true,
		before + "@user_script: 146: -NOREPLICAS Not enough good replicas to write.":                true,
		before + "@user_script: 146: -MISCONF Redis is configured to save RDB snapshots":            true,
		"OOM command not allowed when used memory > 'maxmemory'. script: f_1, on @user_script:146.": true,
		"MOVED 3999 127.0.0.1:6381": true,
		"ASK 3999 127.0.0.1:6381":   true,
		before + "WRONGTYPE Operation against a key holding the wrong kind of value":                      false,
		before + "@user_script: 146: Unknown Redis command called from Lua script":                        false,
		"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand":              false,
		"WRONGPASS invalid username-password pair":                                                        false,
		before + "user_script:146: attempt to compare nil with number that is no OOM and is not READONLY": false,
	} {
		failed, is := errors.AsType[*store.StoreError](error(newStoreError("book", serverError(text))))
		require.True(t, is)
		require.Equal(t, temporary, failed.Temporary(), text)
	}
}
