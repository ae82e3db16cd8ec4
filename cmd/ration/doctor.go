package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/redisstore"
	"github.com/ration-go/ration/internal/view"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "what is wrong with a Redis for a fleet, and what to change", ArgsUsage: "",
		Description: `Looks at a server's version, latency, clock, memory, persistence, replication, keys
and clients, and tries everything that a worker does with a budget of its own, which it
removes. It prints what is wrong and what to change. The exit status is 1 if anything
is.

  ration doctor -redis redis://localhost:6379/0`,
		Flags: []cli.Flag{redisFlag(), jsonFlag(), &cli.BoolFlag{Name: "all", Usage: "print also what is right"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.NArg() > 0 {
				return usagef("%q is no flag: name the server with -redis", c.Args().First())
			}
			kept, client, err := openStore(c)
			if err != nil {
				return err
			}
			defer client.Close()
			all := examine(ctx, kept, client)
			out := c.Root().Writer
			if c.Bool("json") {
				err = printJSON(out, all)
			} else {
				paint := colours(out)
				for _, f := range all {
					switch {
					case f.Level == "ok" && c.Bool("all"):
						fmt.Fprintf(out, "ok       %s: %s\n", f.Check, f.Says)
					case f.Level == "wrong":
						fmt.Fprintf(out, "%s  %s: %s\n", paint(red, "WRONG  "), f.Check, f.Says)
					case f.Level == "warning":
						fmt.Fprintf(out, "%s  %s: %s\n", paint(yellow, "warning"), f.Check, f.Says)
					}
					if f.Change != "" {
						for _, line := range wrap(f.Change, 70) {
							fmt.Fprintf(out, "         %s\n", line)
						}
					}
				}
			}
			if err == nil && slices.ContainsFunc(all, func(f finding) bool { return f.Level != "ok" }) {
				err = errFound
			}
			return err
		},
	}
}

// A finding is what one check found.
type finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"` // ok, warning or wrong
	Says   string `json:"says"`
	Change string `json:"change,omitempty"` // what to change
}

// A patient is the server that is examined.
type patient struct {
	client   redis.UniversalClient
	kept     *ration.RedisStore
	info     map[string]map[string]string
	findings []finding
}

func (p *patient) add(check, level, says, change string) {
	p.findings = append(p.findings, finding{check, level, view.Printable(says), change})
}

func (p *patient) of(section, field string) string { return p.info[section][field] }

func (p *patient) number(section, field string) int64 {
	n, _ := strconv.ParseInt(p.of(section, field), 10, 64)
	return n
}

// examine looks at all there is to look at.
func examine(ctx context.Context, kept *ration.RedisStore, client redis.UniversalClient) []finding {
	p := &patient{client: client, kept: kept}
	if err := client.Time(ctx).Err(); err != nil { // and not PING, which a worker's user need not have
		p.add("connection", "wrong", err.Error(), adviceOf(err))
		return p.findings
	}
	var err error
	if p.info, err = client.InfoMap(ctx).Result(); err != nil {
		p.add("INFO", "warning", "the user may not ask: "+err.Error(), "Allow +info, or most checks say nothing.")
	}
	p.version()
	p.latency(ctx)
	p.memory(ctx)
	p.persistence()
	p.replication()
	p.cluster(ctx)
	p.clients()
	p.keys(ctx)
	p.slowScripts(ctx)
	p.rights(ctx)
	p.trial(ctx)
	return p.findings
}

func adviceOf(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"), strings.Contains(text, "invalid username-password"):
		return "Give the user and password: redis://USER:PASSWORD@HOST:PORT/DB."
	case strings.Contains(text, "NOPERM"):
		return "Give its user +time, and what docs/howto/run-redis.md lists under \"Rights\"."
	case strings.Contains(text, "LOADING"):
		return "It reads its data set: try again soon."
	case strings.Contains(text, "DB index"):
		return "Name a database that there is: the number behind the last slash."
	}
	return "Is it the right host and port, is the server up, and does no firewall drop connections?"
}

func (p *patient) version() {
	version, valkey := p.of("Server", "redis_version"), p.of("Server", "valkey_version")
	major, _, _ := strings.Cut(version, ".")
	switch n, err := strconv.Atoi(major); {
	case valkey != "":
		p.add("version", "ok", "Valkey "+valkey, "")
	case err != nil:
	case n < 7:
		p.add("version", "wrong", "Redis "+version, "ration needs Redis 7.0 or later, or Valkey: its scripts use what came with 7.0.")
	default:
		p.add("version", "ok", "Redis "+version, "")
	}
}

// latency measures round trips, and whether the server's clock goes as this one does.
func (p *patient) latency(ctx context.Context) {
	const times = 30
	var trips, offsets []time.Duration
	for range times {
		asked := time.Now()
		now, err := p.client.Time(ctx).Result()
		arrived := time.Now()
		if err != nil {
			p.add("clock", "wrong", err.Error(), "Give the user +time.")
			return
		}
		trips = append(trips, arrived.Sub(asked))
		offsets = append(offsets, now.Sub(asked.Add(arrived.Sub(asked)/2)))
	}
	offset := offsets[slices.Index(trips, slices.Min(trips))] // the fastest answer knows best
	step := slices.Max(offsets) - slices.Min(offsets)
	slices.Sort(trips)
	middle, worst := trips[times/2], trips[times-1]
	says := fmt.Sprintf("a round trip takes %v, at worst %v", middle.Round(time.Microsecond*10), worst.Round(time.Microsecond*10))
	switch {
	case middle > 20*time.Millisecond:
		p.add("latency", "warning", says, "Each call costs a round trip: put Redis near the workers, or raise RedisStore.Timeout, and see docs/howto/run-redis.md on a store that is far.")
	case worst > 200*time.Millisecond:
		p.add("latency", "warning", says, "Some answers come late: is the machine or its network busy, or is there a slow command?")
	default:
		p.add("latency", "ok", says, "")
	}
	switch {
	case step > worst+time.Second:
		p.add("clock", "wrong", fmt.Sprintf("it stepped by %v while it was looked at", view.Round(step)), "Have NTP slew the server's clock, not step it.")
	case offset.Abs() > time.Minute:
		p.add("clock", "warning", fmt.Sprintf("the server's clock is %v off this machine's", view.Round(offset)), "The fleet goes by the server's clock alone, but windows of the calendar will end at other times: start NTP on both.")
	default:
		p.add("clock", "ok", fmt.Sprintf("%v off this machine's", view.Round(offset)), "")
	}
}

func (p *patient) memory(ctx context.Context) {
	policy, most, used := p.of("Memory", "maxmemory_policy"), p.number("Memory", "maxmemory"), p.number("Memory", "used_memory")
	if policy == "" {
		policy = p.client.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"]
	}
	switch {
	case policy != "" && policy != "noeviction":
		p.add("memory", "wrong", "maxmemory-policy is "+policy, "Set maxmemory-policy noeviction: with any other Redis throws logs away when it is full, and calls are booked twice.")
	case most > 0 && used > most/10*9:
		p.add("memory", "warning", fmt.Sprintf("%d of %d MB are used", used>>20, most>>20), "Raise maxmemory: a full Redis books nothing.")
	default:
		p.add("memory", "ok", fmt.Sprintf("%d MB used", used>>20), "")
	}
}

func (p *patient) persistence() {
	if p.info == nil {
		return
	}
	switch aof := p.of("Persistence", "aof_enabled") == "1"; {
	case aof && p.of("Persistence", "aof_last_write_status") != "ok":
		p.add("persistence", "wrong", "the append-only file cannot be written", "Look at its disk: Redis refuses writes.")
	case p.of("Persistence", "rdb_last_bgsave_status") == "err":
		p.add("persistence", "wrong", "the last snapshot failed", "Look at its disk: Redis refuses writes while stop-writes-on-bgsave-error is on.")
	case !aof:
		p.add("persistence", "warning", "there is no append-only file", "Set appendonly yes: after a restart without one the fleet waits for two seconds and records what its workers remember, and what ended workers had booked is lost.")
	default:
		p.add("persistence", "ok", "an append-only file is written", "")
	}
}

func (p *patient) replication() {
	switch p.of("Replication", "role") {
	case "":
		return
	case "slave":
		p.add("replication", "wrong", "it is a replica of "+p.of("Replication", "master_host"), "Name its primary, or the Sentinel or Cluster that knows it.")
		return
	}
	for i := range p.number("Replication", "connected_slaves") {
		state := p.of("Replication", fmt.Sprint("slave", i))
		_, after, _ := strings.Cut(state, "lag=")
		if lag, err := strconv.Atoi(after); err == nil && lag > 10 || !strings.Contains(state, "state=online") {
			p.add("replication", "warning", "a replica lags: "+state, "If it takes over, what it has not got is lost, and workers record it again: look at its network and disk.")
			return
		}
	}
	p.add("replication", "ok", "a primary with "+view.Counted(int(p.number("Replication", "connected_slaves")), "replica"), "")
}

func (p *patient) cluster(ctx context.Context) {
	if p.of("Cluster", "cluster_enabled") != "1" {
		return
	}
	text, err := p.client.ClusterInfo(ctx).Result()
	switch {
	case err != nil:
		p.add("cluster", "warning", err.Error(), "Give the user +cluster|info.")
	case !strings.Contains(text, "cluster_state:ok"), !strings.Contains(text, "cluster_slots_ok:16384"):
		assigned := "some"
		if _, after, found := strings.Cut(text, "cluster_slots_ok:"); found {
			assigned, _, _ = strings.Cut(after, "\r\n")
		}
		p.add("cluster", "wrong", assigned+" of 16384 slots are served", "Budgets in the other slots cannot be booked: redis-cli --cluster fix.")
	default:
		p.add("cluster", "ok", "all slots are served", "")
	}
	if _, single := p.client.(*redis.Client); single {
		p.add("client", "wrong", "it is a node of a Cluster, and -redis names one server", "Add ?addr=HOST:PORT of a second node to the URL, and give the workers a redis.ClusterClient.")
	}
}

func (p *patient) clients() {
	now, most := p.number("Clients", "connected_clients"), p.number("Clients", "maxclients")
	switch {
	case most == 0:
	case now > most/10*8:
		p.add("clients", "warning", fmt.Sprintf("%d of %d clients are connected", now, most), "Raise maxclients, or give the workers' clients a smaller PoolSize: who finds no room waits for the store.")
	default:
		p.add("clients", "ok", fmt.Sprintf("%d of %d are connected", now, most), "")
	}
}

// keys looks for what other versions, or other programs, have under ration's prefix.
func (p *patient) keys(ctx context.Context) {
	const most = 200 // calls of SCAN: all of a small server, a part of a large one
	old, foreign := 0, ""
	var at uint64
	for range most {
		keys, next, err := p.client.Scan(ctx, at, "ration:*", 1000).Result()
		if err != nil {
			return // it may not be asked, and nothing depends on it
		}
		for _, key := range keys {
			switch {
			case strings.HasPrefix(key, "ration:v1:"):
				old++
			case !strings.HasPrefix(key, redisstore.KeyPrefix):
				foreign = key
			}
		}
		if at = next; at == 0 {
			break
		}
	}
	switch {
	case old > 0:
		p.add("keys", "warning", view.Counted(old, "key")+" of ration:v1", "Workers of an earlier version may still run: neither counts what the other books. Stop them; the keys expire within a day of their last booking.")
	case foreign != "":
		p.add("keys", "warning", "another program has keys under the prefix: "+foreign, "Give it another prefix or database.")
	default:
		p.add("keys", "ok", "none of another version", "")
	}
}

func (p *patient) slowScripts(ctx context.Context) {
	entries, err := p.client.SlowLogGet(ctx, 128).Result()
	if err != nil {
		return // it may not be asked
	}
	slow, worst := 0, time.Duration(0)
	for _, e := range entries {
		if len(e.Args) > 0 && strings.HasPrefix(strings.ToLower(e.Args[0]), "eval") && e.Duration >= 20*time.Millisecond {
			slow, worst = slow+1, max(worst, e.Duration)
		}
	}
	if slow > 0 {
		p.add("scripts", "warning", fmt.Sprintf("SLOWLOG has %s of up to %v", view.Counted(slow, "script"), worst.Round(time.Millisecond)), "Is the machine's processor shared or throttled? ration's scripts take under 10 ms; other programs' may be those.")
		return
	}
	p.add("scripts", "ok", "none was slow", "")
}
