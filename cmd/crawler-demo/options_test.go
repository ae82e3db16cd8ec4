package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

func TestOptions(t *testing.T) {
	o, err := parseOptions(nil)
	require.NoError(t, err)
	require.True(t, o.isDemo())
	require.Equal(t, []int{64, 1}, []int{o.workers, o.processes})

	o, err = parseOptions(strings.Fields("-urls u -tokens t -limit 5000/1h -limit 10/s -auth query:access_token " +
		"-follow paging.next -redis redis://h:6379/0 -processes 4 -max 7 -out o.jsonl -json"))
	require.NoError(t, err)
	require.False(t, o.isDemo())
	require.Equal(t, []ration.Limit{ration.PerHour(5000), ration.PerSecond(10)}, o.limits)
	require.Equal(t, auth{"query", "access_token"}, o.auth)
	require.Equal(t, follower{"paging", "next"}, o.follow)
	require.Equal(t, "o.jsonl.svg", o.plot)
	require.Equal(t, []int{16, 4, 7}, []int{o.workers, o.processes, o.max})

	o, err = parseOptions(strings.Fields("-urls - -tokens t -limit 1/h -redis redis://h -processes 100 -plot p.svg"))
	require.NoError(t, err)
	require.Equal(t, []int{100, 100}, []int{o.workers, o.processes}, "each process has a worker")
	require.Equal(t, "p.svg", o.plot)
}

func TestBadInputIsOneLineAndWritesNothing(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "the-password")
	silent := redistest.Start(t)
	silent.Stop(t)
	dir := t.TempDir()
	t.Chdir(dir)
	const crawl = "-urls urls -tokens tokens -limit 5000/1h -out out.jsonl "
	files := map[string]string{
		"urls": "# a list\n\nhttp://127.0.0.1:1/a\n", "tokens": "a-secret\n", "empty": "", "blank": "\n \n", "comments": "# none\nBearer \n",
		"ftp": "http://127.0.0.1:1/a\nftp://127.0.0.1/b\n", "relative": "/a\n", "password": "http://me:a-secret@127.0.0.1/\n",
		"secret": "http://127.0.0.1/a-secret/me\n", "spaced": "a secret\n", "long": "short\n" + strings.Repeat("x", 1_000_000) + "\n",
		"foreign.jsonl": "{\"url\":\"http://127.0.0.1:1/a\"}\n", "notes.txt": "remember the milk",
	}
	for name, text := range files {
		write(t, name, text)
	}
	require.NoError(t, os.Mkdir("directory", 0o700))
	for _, row := range []struct{ args, says string }{
		{"-nope", "flag provided but not defined: -nope"},
		{"urls.txt", `"urls.txt" is not a flag`},
		{"-workers many", "-workers: write a whole number"},
		{"-workers 0", "-workers is 0: it must be from 1"},
		{"-workers 3 -processes 4 -redis redis://h", "-workers is 3: it must be from 4"},
		{"-processes 0", "-processes is 0"},
		{"-json=perhaps", "-json: leave the value out"},
		{"-max 3", "-max needs -urls"},
		{"-limit 3/1s -limit 9/1m", "-limit is given 2 times: the demo's provider has one limit"},
		{"-limit 3/1s:gcra,burst=4", `-limit "3/1s:gcra,burst=4": Burst is 4: it must be from 0 to Max, 3`},
		{"-limit 3/1s:gcra,scope=search", "-limit 3/1s:gcra,scope=search: its scope would leave it without effect"},
		{"-limit 9999/1s", "-limit 9999/1s: 3 tokens have quota for 179982 calls in the 5s of the demo"},
		{"-tokens tokens", "-tokens needs -urls"},
		{"-provider=", "-provider is empty"},
		{"-provider github", "-provider needs -urls"},
		{crawl + "-provider githb", `-provider: no provider is named "githb": did you mean github`},
		{"-urls urls -tokens tokens -provider meta", "-provider meta names no limit that all callers have"},
		{"-urls=", "-urls is empty"},
		{"-urls urls", "needs -tokens FILE"},
		{"-urls urls -tokens tokens", "needs -limit"},
		{"-urls - -tokens - -limit 3/1s", "-tokens cannot come from standard input"},
		{crawl + "-limit 5000", `-limit "5000": write it as MAX/WINDOW, such as 5000/1h`},
		{crawl + "-limit 0/1h", `-limit "0/1h": Max is 0`},
		{crawl + "-limit 5/soon", `"soon" is not a window`},
		{crawl + "-limit 5/1h:bucket", `"bucket" is not an algorithm: write one of sliding-log,`},
		{crawl + "-limit 5/1h:sliding-log,scope=a", "its scope would leave it without effect"},
		{crawl + strings.Repeat("-limit 5/1s ", 16), "there are 17 limits"},
		{crawl + "-max 0", "-max is 0"},
		{crawl + "-auth basic", "-auth is wrong: write bearer, query:NAME or header:NAME"},
		{crawl + "-auth header:a:b", "-auth is wrong"},
		{crawl + "-follow a..b", "-follow is wrong: write the path of a URL"},
		{crawl + "-budget {b}", "-budget: write a name"},
		{crawl + "-plot out.jsonl", "name the same file"},
		{crawl + "-plot directory", "-plot: directory is not a file"},
		{crawl + "-plot nowhere/p.svg", "there is no directory nowhere"},
		{crawl + "-processes 2", "-processes 2 needs -redis"},
		{crawl + "-redis http://127.0.0.1", `-redis has the scheme "http"`},
		{crawl + "-redis redis://:the-password@127.0.0.1:x", "-redis is not a URL"},
		{crawl + "-redis redis://127.0.0.1/zero", "-redis: invalid database number"},
		{crawl + "-redis redis://127.0.0.1:1", "connection refused): start it, or name another"},
		{crawl + "-redis redis://" + silent.Addr, "does not answer as it should"},
		{crawl + "-redis redis://" + server.Addr, "NOAUTH"},
		{crawl + "-redis redis://:a-secret@" + server.Addr, "WRONGPASS"},
		{crawl + "-redis redis://:the-password@" + server.Addr + "/99", "out of range"},
		{"-redis redis://127.0.0.1:1", "connection refused"},
		{crawl + "-urls nope", "-urls: open nope: no such file"},
		{crawl + "-urls directory", "is a directory"},
		{crawl + "-urls empty", "empty has no URL in it"},
		{crawl + "-urls blank", "blank has no URL in it"},
		{crawl + "-urls ftp", `ftp line 2: the scheme "ftp"`},
		{crawl + "-urls relative", "relative line 1: not a whole URL"},
		{crawl + "-urls password", "password line 1: the URL has a user or password in it"},
		{crawl + "-urls secret", "secret line 1: the URL has a token in it"},
		{crawl + "-tokens nope", "-tokens: open nope: no such file"},
		{crawl + "-tokens empty", "empty has no token in it"},
		{crawl + "-tokens blank", "blank has no token in it"},
		{crawl + "-tokens comments", "comments line 2 is not a token: it says Bearer and no secret"},
		{crawl + "-tokens spaced", "spaced line 1 is not a token"},
		{crawl + "-tokens long", "long line 2 is not a token: it has 1000000 bytes"},
		{crawl + "-out directory", "directory is not a file"},
		{crawl + "-out nowhere/out.jsonl", "-out: nowhere/out.jsonl: no such file or directory"},
		{crawl + "-out foreign.jsonl", "foreign.jsonl line 1 was not written by crawler-demo"},
		{crawl + "-out notes.txt", "notes.txt line 1 was not written by crawler-demo"},
	} {
		check := func(t *testing.T, a *app) {
			begun := time.Now()
			status, stdout, stderr := run(t, a, strings.Fields(row.args)...)
			require.Equal(t, exitBadInput, status)
			require.Empty(t, stdout)
			require.True(t, strings.HasPrefix(stderr, "crawler-demo: "), stderr)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
			require.Contains(t, stderr, row.says)
			require.NotContains(t, stderr, "a-secret")
			require.NotContains(t, stderr, "the-password")
			require.Less(t, time.Since(begun), 3*checkTimeout)
		}
		t.Run(row.args, func(t *testing.T) {
			a := &app{demo: fullDemo}
			if !strings.HasSuffix(row.args, "redis://127.0.0.1:1") {
				check(t, a)
				return
			}
			inFakeTime(t, 0, a, func(t *testing.T, a *app) { // go-redis dials again, after pauses
				check(t, a)
				time.Sleep(time.Second) // and looks each second whether its pool is still open
			})
		})
	}
	found, err := filepath.Glob("*")
	require.NoError(t, err)
	require.Len(t, found, len(files)+1)
	for name, text := range files {
		now, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(now), name)
	}
}

func TestListIsReadFromStandardInput(t *testing.T) {
	s := newSite(t, new(simulated.Provider))
	list, err := os.ReadFile(s.urls)
	require.NoError(t, err)
	twice := "\xef\xbb\xbf# users\r\n\r\n" + strings.ReplaceAll(string(list), "\n", "#top\r\n") + "\n" + string(list)
	a := &app{stdin: strings.NewReader(twice)}
	status, stdout, stderr := run(t, a, s.args("-urls", "-", "-limit", "5000/1h")...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "DONE: 200 URLs fetched, 0 refused\n")
	s.requireWhole(t)
}
