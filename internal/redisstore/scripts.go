package redisstore

import (
	"embed"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/limit"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script is its file behind the parts that it needs: an account's limits decide
// which. Redis keeps every different text that it was ever sent, so the parts always
// stand in the same order.
type script struct {
	name     string
	accounts bool // it reads accounts
	permits  bool // it reads permits
	front    bool // lua/front.lua stands before all, and answers what it can
}

var (
	bookScript      = script{name: "book", accounts: true, front: true}
	recordScript    = script{name: "record", accounts: true}
	reconcileScript = script{name: "reconcile", accounts: true}
	usageScript     = script{name: "usage", accounts: true}
	resetScript     = script{name: "reset", accounts: true}

	// These need not know the limits, or find them with the account.
	resolveScript  = sync.OnceValue(func() *redis.Script { return script{name: "resolve"}.with(0) })
	cancelScript   = sync.OnceValue(func() *redis.Script { return script{name: "cancel", accounts: true}.with(allAlgorithms) })
	correctScript  = sync.OnceValue(func() *redis.Script { return script{name: "correct", accounts: true}.with(allAlgorithms) })
	holdScript     = sync.OnceValue(func() *redis.Script { return script{name: "hold", accounts: true}.with(allAlgorithms) })
	pauseScript    = sync.OnceValue(func() *redis.Script { return script{name: "pause"}.with(0) })
	resumeScript   = sync.OnceValue(func() *redis.Script { return script{name: "resume", accounts: true}.with(allAlgorithms) })
	describeScript = sync.OnceValue(func() *redis.Script { return script{name: "describe", permits: true}.with(0) })
	cardScript     = sync.OnceValue(func() *redis.Script { return script{name: "card", accounts: true}.with(allAlgorithms) })
	labelScript    = sync.OnceValue(func() *redis.Script { return script{name: "label"}.with(0) })
	statusScript   = sync.OnceValue(func() *redis.Script { return script{name: "status", permits: true}.with(0) })
)

// parts are the files of the algorithms, in their order in the scripts: those of the general path, of which
// SlidingLog's are in all scripts, and those whose sections stand in front.lua.
var parts = []struct {
	algorithm limit.Algorithm
	files     []string
	front     []string
}{
	{limit.SlidingLog, nil, []string{"frontslidinglog"}},
	{limit.StreamLog, []string{"streamlog"}, []string{"frontstreamlog"}},
	{limit.FixedWindow, []string{"firstuse", "fixedwindow"}, []string{"frontfirstuse", "frontfixedwindow"}},
	{limit.SlidingWindow, []string{"slidingwindow"}, []string{"frontslidingwindow"}},
	{limit.SubWindows, []string{"subwindows"}, []string{"frontsubwindows"}},
	{limit.GCRA, []string{"gaps", "gcra"}, []string{"frontgcra"}},
}

// logsOnly are the algorithms of a log, of which another may have been kept before, and
// allAlgorithms are those of a script that takes bookings back, whatever counts them.
var (
	logsOnly      = limit.AlgorithmSet(1<<limit.SlidingLog | 1<<limit.StreamLog)
	allAlgorithms = func() limit.AlgorithmSet {
		all := logsOnly
		for _, p := range parts {
			all |= 1 << p.algorithm
		}
		return all
	}()
)

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
	files := []string{"common", "session"}
	if s.accounts {
		files = append(files, "pile", "log", "search", "summary", "account", "entries", "write")
		for _, p := range parts {
			if set.Has(p.algorithm) {
				files = append(files, p.files...)
			}
		}
	}
	if s.permits {
		files = append(files, "permits")
	}
	// What is defined in a function that is not called costs nothing.
	source := "local function general()\n" + luaSource(append(files, s.name)...) + "end\nreturn general()\n"
	if s.front {
		source = frontSource(set) + source
	}
	made, _ := compiled.LoadOrStore(key, redis.NewScript(luaSource("layout")+source))
	return made.(*redis.Script)
}

// frontSource returns front.lua for limits of those algorithms. Where front.lua has a line "--> NAME" stand
// the sections of that name of the algorithms' files: as text, since to call a function would cost more than
// most of them do.
func frontSource(set limit.AlgorithmSet) string {
	var b strings.Builder
	for line := range strings.Lines(luaSource("front")) {
		name, is := strings.CutPrefix(strings.TrimSpace(line), sectionMark)
		if !is {
			b.WriteString(line)
			continue
		}
		for _, p := range parts {
			for _, file := range p.front {
				if set.Has(p.algorithm) {
					b.WriteString(section(file, name))
				}
			}
		}
	}
	return b.String()
}

// sectionMark begins the line before a section, with the section's name behind it.
const sectionMark = "--> "

// section returns the section of a file with that name; empty: it has none.
func section(file, name string) string {
	for _, one := range strings.Split(luaSource(file), "\n"+sectionMark)[1:] {
		if title, text, _ := strings.Cut(one, "\n"); title == name {
			return text + "\n"
		}
	}
	return ""
}

func luaSource(parts ...string) string {
	var text []byte
	for _, part := range parts {
		piece, err := luaFiles.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err) // the files are embedded: only a wrong name gets here
		}
		text = append(text, piece...)
	}
	return string(text)
}
