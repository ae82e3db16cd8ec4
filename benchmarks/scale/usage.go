package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

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

var (
	cpuLine     = regexp.MustCompile(`(?m)^used_cpu_(?:sys|user):([0-9.]+)`)
	evalshaLine = regexp.MustCompile(`(?m)^cmdstat_evalsha:calls=([0-9]+),usec=([0-9]+),.*failed_calls=([0-9]+)`)
)

func readUsage(ctx context.Context, node *redis.Client) (u nodeUsage, err error) {
	cpu, err := node.Info(ctx, "cpu").Result()
	if err != nil {
		return u, err
	}
	stats, err := node.Info(ctx, "commandstats").Result()
	if err != nil {
		return u, err
	}
	lines := cpuLine.FindAllStringSubmatch(cpu, -1)
	if len(lines) != 2 {
		return u, fmt.Errorf("INFO cpu has %d of 2 lines", len(lines))
	}
	for _, line := range lines {
		seconds, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(seconds * float64(time.Second))
	}
	if line := evalshaLine.FindStringSubmatch(stats); line != nil { // none before the first
		var numbers [3]float64
		for i, text := range line[1:] {
			if numbers[i], err = strconv.ParseFloat(text, 64); err != nil {
				return u, err
			}
		}
		u.scripts = numbers[0] - numbers[2]
		u.script = time.Duration(numbers[1]) * time.Microsecond
	}
	return u, nil
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
		cpu:       micros(cpu) / n,
		script:    micros(script) / n,
		most:      float64(busiest) / float64(cpu),
		busy:      float64(busiest) / float64(took),
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
