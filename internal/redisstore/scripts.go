package redisstore

import (
	"embed"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script is its file behind the parts that it needs: an account's limits decide
// which. Redis keeps every different text that it was ever sent, so the parts are
// always put together in the same way.
type script struct {
	name     string
	quick    string // what comes before all parts, where they are most often not needed
	accounts bool   // reads accounts
}

var (
	bookScript   = script{name: "book", quick: "quick", accounts: true}
	recallScript = script{name: "recall"}
	cancelScript = script{name: "cancel", accounts: true}
	enterScript  = script{name: "enter", accounts: true}
	oweScript    = script{name: "owe", accounts: true}
	usageScript  = script{name: "usage", quick: "glance", accounts: true}
	pauseScript  = script{name: "pause"}
	resetScript  = script{name: "reset", accounts: true}
	statusScript = script{name: "status"}
)

// parts are the files of the algorithms, in the order of the scripts.
var parts = []struct {
	algorithm limit.Algorithm
	file      string
}{
	{limit.SlidingLog, "slidinglog"}, {limit.StreamLog, "streamlog"}, {limit.FixedWindow, "fixedwindow"},
	{limit.SlidingWindow, "slidingwindow"}, {limit.SubWindows, "subwindows"}, {limit.GCRA, "gcra"},
}

// logsOnly are those that a script needs which does not know the limits.
const logsOnly = limit.AlgorithmSet(1<<limit.SlidingLog | 1<<limit.StreamLog)

var compiled sync.Map // of scriptKey to *redis.Script

type scriptKey struct {
	script script
	set    limit.AlgorithmSet
}

// with returns the script for limits of those algorithms.
func (s script) with(set limit.AlgorithmSet) *redis.Script {
	key := scriptKey{s, set}
	if known, found := compiled.Load(key); found {
		return known.(*redis.Script)
	}
	var files []string
	if s.quick != "" {
		files = append(files, s.quick)
	}
	files = append(files, "common", "session")
	if s.accounts {
		files = append(files, "log", "account", "holes")
		for _, p := range parts {
			if set.Has(p.algorithm) {
				files = append(files, p.file)
			}
		}
	}
	made, _ := compiled.LoadOrStore(key, redis.NewScript(luaSource(append(files, s.name)...)))
	return made.(*redis.Script)
}

func luaSource(parts ...string) string {
	var text []byte
	for _, part := range parts {
		piece, err := luaFiles.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err) // the file is embedded: only a wrong name gets here
		}
		text = append(text, piece...)
	}
	return string(text)
}

// arguments spells out the zones and the sets of limits.
func limitArguments(a *store.Accounts, args []any, now time.Time) []any {
	args = append(zoneArguments(a, args, now), len(a.Sets))
	for _, set := range a.Sets {
		args = append(args, set.Name)
	}
	return args
}

// zoneArguments spells out the zones, as they are about now.
func zoneArguments(a *store.Accounts, args []any, now time.Time) []any {
	args = append(args, len(a.Zones))
	for _, name := range a.Zones {
		args = append(args, limit.EncodeZone(name, now))
	}
	return args
}
