package redisstore

import "strings"

// advices are what to change, by what an error of Redis or of the network contains.
var advices = []struct{ contains, advice string }{
	{"NOAUTH", "this Redis wants a password: set Password, and Username if it has users, in the options of RedisStore.Client"},
	{"unauthenticated", "this Redis wants a password: set Password, and Username if it has users, in the options of RedisStore.Client"},
	{"WRONGPASS", "Username and Password in the options of RedisStore.Client are not those of a user of this Redis"},
	{"NOPERM", permission},
	{"can't run this command", permission},
	{"ACL failure in script", permission},
	{"OOM command not allowed", "this Redis has no memory left: raise its maxmemory, or find out what else fills it"},
	{"READONLY", "this is a replica: name the primary in the options of RedisStore.Client, or the Sentinels or the Cluster that know it"},
	{"MISCONF", "this Redis cannot save its data, and its log says why: mend that, or set stop-writes-on-bgsave-error no"},
	{"NOREPLICAS", "this Redis has too few replicas for its min-replicas-to-write: start them, or lower it"},
	{"max number of clients reached", clients},
	{"broken pipe", clients},
	{"connection reset", clients},
	{"EOF", clients},
	{"connection pool timeout", pool},
	{"client is closed", "RedisStore.Client was closed: close it after the last call of the budget, and after Settle"},
	{"unknown command", "ration needs Redis 7.0, Valkey or what does all that they do"},
}

const (
	pool = "all connections of RedisStore.Client are in use, or wait for replies that do not come: lower ReadTimeout in its options, " +
		"or raise PoolSize"
	permission = "the user lacks a command or a key that ration needs: docs/howto/run-redis.md has them all under \"Rights\""
	clients    = "Redis closed the connection: it restarts, or has too many. Then raise its maxclients, or lower PoolSize in the options of " +
		"RedisStore.Client"
)

// An advisedError is an error with what to change.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Error() string {
	return strings.TrimSuffix(e.error.Error(), ".") + ": " + e.advice
}
func (e *advisedError) Unwrap() error { return e.error }

// advised returns the error with what to change, if that is known.
func advised(err error) error {
	text := err.Error()
	for _, one := range advices {
		if strings.Contains(text, one.contains) {
			return &advisedError{err, one.advice}
		}
	}
	return err
}
