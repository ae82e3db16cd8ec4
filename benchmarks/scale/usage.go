package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/redis/go-redis/v9"
)

// A nodeUsage is what a node has used since it started.
type nodeUsage struct {
	cpu     time.Duration // of the whole process, in user and system mode
	scripts float64       // calls of EVALSHA that ran a script
	script  time.Duration // in them
}

// usage asks all nodes.
func (s *site) usage(ctx context.Context) ([]nodeUsage, error) {
	all := make([]nodeUsage, len(s.nodes))
	for i, node := range s.nodes {
		var err error
		if all[i], err = readUsage(ctx, node); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readUsage(ctx context.Context, node *redis.Client) (u nodeUsage, err error) {
	if u.cpu, err = harness.ProcessorTime(ctx, node, ""); err != nil {
		return u, err
	}
	stats := node.InfoMap(ctx, "commandstats")
	if line := stats.Item("Commandstats", "cmdstat_evalsha"); line != "" { // none before the first
		fields := make(map[string]float64)
		for field := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(field, "=")
			if fields[name], err = strconv.ParseFloat(value, 64); err != nil {
				return u, err
			}
		}
		u.scripts = fields["calls"] - fields["failed_calls"]
		u.script = time.Duration(fields["usec"]) * time.Microsecond
	}
	return u, stats.Err()
}

// newSample tells what so many bookings took.
func newSample(bookings int, took time.Duration, before, after []nodeUsage) sample {
	n := float64(bookings)
	var cpu, busiest, script time.Duration
	var scripts float64
	for i := range after {
		used := after[i].cpu - before[i].cpu
		cpu, busiest = cpu+used, max(busiest, used)
		script += after[i].script - before[i].script
		scripts += after[i].scripts - before[i].scripts
	}
	return sample{
		perSecond: n / took.Seconds(),
		batch:     n / scripts,
		cpu:       harness.Micros(cpu) / n,
		script:    harness.Micros(script) / n,
		most:      float64(busiest) / float64(cpu),
		busy:      float64(busiest) / float64(took),
	}
}
