package redistest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Commands is how many scripting commands clients have sent since the server
// started: the sum of the calls of EVAL, EVALSHA, FCALL, their _RO forms and
// SCRIPT with any subcommand, as INFO commandstats has them. Two readings
// around an action tell how many round trips it took.
//
// It sums these because INFO counts a command that a script calls like one
// that a client sent, in cmdstat_get as in total_commands_processed: in Redis
// 7.0, one EVAL that calls SET, GET and INCR adds 4 to the latter. A script
// may not call a scripting command, so these alone are the clients' own.
//
// A failed call counts. EVALSHA answered by NOSCRIPT counts 1, and the EVAL
// that go-redis sends after it another 1. A call that Redis rejects before it
// runs does not: a wrong number of arguments, no permission, and, for a
// script with a "#!lua" line, OOM. To see commands of every kind, use
// [Server.Record].
func (s *Server) Commands(tb testing.TB) int64 {
	tb.Helper()
	c := s.admin()
	defer c.Close()
	info, err := c.Info(tb.Context(), "commandstats").Result()
	if err != nil {
		tb.Fatalf("redistest: INFO commandstats of %s: %v", s.Addr, err)
	}
	n, err := scriptingCalls(info)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	return n
}

// scriptingCalls sums lines like "cmdstat_evalsha:calls=3,usec=95,...". Redis
// 6 has one line for SCRIPT, Redis 7 one like "cmdstat_script|load" for each
// subcommand.
func scriptingCalls(info string) (int64, error) {
	scripting := []string{"eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "script"}
	var sum int64
	for line := range strings.Lines(info) {
		line, ok := strings.CutPrefix(line, "cmdstat_")
		if !ok {
			continue
		}
		name, stats, _ := strings.Cut(line, ":calls=")
		name, _, _ = strings.Cut(name, "|")
		if !slices.Contains(scripting, name) {
			continue
		}
		calls, _, _ := strings.Cut(stats, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO line %q: %w", line, err)
		}
		sum += n
	}
	return sum, nil
}

// A Recording holds what clients sent to a server since [Server.Record], as
// MONITOR reports it.
type Recording struct {
	server *Server

	mu    sync.Mutex // protects names and marks
	names []string
	marks map[string]int // length of names when the ECHO of a mark came by
	err   error          // why there will be no more
}

// Record notes every command that clients send from now on, until the test
// ends or the server does. It halves the server's speed. Call it and
// Commands outside of a bubble; what is recorded may happen inside.
func (s *Server) Record(tb testing.TB) *Recording {
	tb.Helper()
	needRealTime(tb, "Record")
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	lines := bufio.NewReader(conn)
	_, err = fmt.Fprint(conn, "MONITOR\r\n")
	if err == nil {
		var reply string
		if reply, err = lines.ReadString('\n'); err == nil && reply != "+OK\r\n" {
			err = fmt.Errorf("MONITOR: %q", reply)
		}
	}
	if err != nil {
		conn.Close()
		tb.Fatalf("redistest: %v", err)
	}
	r := &Recording{server: s, marks: make(map[string]int)}
	var wg sync.WaitGroup
	wg.Go(func() { r.read(lines) })
	tb.Cleanup(func() {
		conn.Close()
		wg.Wait()
	})
	return r
}

// Commands is the names, in lower case and in order, of all commands that
// clients sent since Record and before this call. It leaves out what a
// script called and what only sets up a connection (HELLO, CLIENT, SELECT;
// Redis itself hides AUTH), and knows nothing of commands Redis refused.
func (r *Recording) Commands(tb testing.TB) []string {
	tb.Helper()
	// MONITOR reports in order, so once this ECHO came by, all that was
	// answered before it has.
	mark := Name(tb)
	c := r.server.admin()
	defer c.Close()
	if err := c.Echo(tb.Context(), mark).Err(); err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	var names []string
	err := poll(tb.Context(), startTimeout, func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		n, ok := r.marks[mark]
		if ok {
			names = slices.Clone(r.names[:n])
			return nil
		}
		if r.err != nil {
			return gaveUp{r.err}
		}
		return fmt.Errorf("MONITOR lags behind")
	})
	if err != nil {
		tb.Fatalf("redistest: recording of %s: %v", r.server.Addr, err)
	}
	return names
}

// read takes lines like `+1795172347.809443 [0 127.0.0.1:48990] "get" "a"`
// until the connection ends. A script's own calls have "lua" for an address.
func (r *Recording) read(lines *bufio.Reader) {
	for {
		line, err := lines.ReadString('\n')
		r.mu.Lock()
		if err != nil {
			r.err = fmt.Errorf("recording ended: %w", err)
			r.mu.Unlock()
			return
		}
		_, rest, _ := strings.Cut(line, " [")
		client, command, ok := strings.Cut(rest, "] ")
		words := strings.SplitN(command, `"`, 5) // "", name, " ", first argument, rest
		if ok && !strings.HasSuffix(client, " lua") && len(words) > 1 {
			switch name := strings.ToLower(words[1]); {
			case name == "hello" || name == "client" || name == "select":
			case name == "echo" && len(words) > 3 && strings.HasPrefix(words[3], namePrefix):
				r.marks[words[3]] = len(r.names)
			default:
				r.names = append(r.names, name)
			}
		}
		r.mu.Unlock()
	}
}
