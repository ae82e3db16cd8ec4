package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// slowest is what no command may be slower than.
const slowest = 10 * time.Millisecond

// slowlog is row 13. All that the library sends bears its client's name, by which
// it is known in the SLOWLOG.
func slowlog(ctx context.Context, b *bench) ([]check, error) {
	server, rdb, err := another(ctx)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	defer rdb.Close()
	const ours = "ration"
	// Patient: a slow command is to be found in the SLOWLOG.
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ClientName: ours, ReadTimeout: time.Minute, MaxRetries: -1})
	defer client.Close()
	steady := redis.NewClient(&redis.Options{Addr: server.Addr, ClientName: steadyName, ReadTimeout: time.Minute, MaxRetries: -1})
	defer steady.Close()
	h := &history{large: b.large, rdb: rdb, store: &ration.RedisStore{Client: client, Timeout: time.Minute}, watch: &stopwatch{rdb: rdb, ours: ours, steady: steady}}
	if err := h.watch.begin(ctx); err != nil {
		return nil, err
	}
	sent := new(harness.Sent)
	client.AddHook(sent)
	client.AddHook(h.watch)
	for _, chapter := range h.chapters() {
		begun := time.Now()
		if err := chapter.happen(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", chapter.name, err)
		}
		worst, err := h.look(chapter.name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(b.progress, "  %s: %v, the slowest command %v\n", chapter.name, time.Since(begun).Round(time.Millisecond), worst)
	}
	requests, _ := sent.Read()
	b.note("slowest-command", "ms", float64(h.worst)/1e6)
	for _, line := range h.slow {
		fmt.Fprintf(b.progress, "  slower than %v: %s\n", slowest, line)
	}
	figures := fmt.Sprintf("the slowest took %s ms, %s", number(float64(h.worst)/1e6), h.when)
	if h.held > 0 {
		figures += fmt.Sprintf("; in the SLOWLOG are %d more, in which Redis was not run all the time: of its processor none used so much", h.held)
	}
	_, worst := tooSlow(h.watch.same)
	b.note("slowest-command-that-does-the-same", "ms", float64(worst)/1e6)
	return []check{{
		hindrance: h.heldUp(),
		what:      fmt.Sprintf("slower than %v, in a history of %s commands on up to %s entries", slowest, number(float64(requests)), number(float64(b.large))),
		measured:  []float64{float64(h.over)}, target: atMost(0, "commands"),
		figures: figures,
	}}, nil
}

// heldUp tells how often a command that does the same each time was as slow, if ours were
// no more often than chance has it.
func (h *history) heldUp() string {
	count, worst := tooSlow(h.watch.same)
	if h.over == 0 || moreOften(h.over, count) {
		return ""
	}
	return fmt.Sprintf("a script that only counts, for %v to %v at best, was called between ours for as long as they took, and took longer than %v too: %d times, up to %s ms",
		sameTime, mostSame, slowest, count, number(float64(worst)/1e6))
}

// moreOften reports whether something that was seen so often more than the other comes
// more often, in as long a time: whether it would be seen as much ahead in less than a
// twentieth of all cases if it did not. Beside one that was never seen it always does.
func moreOften(seen, other int) bool {
	if other == 0 {
		return seen > 0
	}
	chance, ways := 0.0, 1.0 // of the last k of all, beginning with none
	all := seen + other
	for k := 0; k <= other; k++ {
		chance += ways / math.Pow(2, float64(all))
		ways *= float64(all-k) / float64(k+1)
	}
	return chance < 0.05
}

// look judges the commands of a chapter, and returns the longest time of one. That is
// 0 if none took a millisecond.
func (h *history) look(chapter string) (worst time.Duration, err error) {
	all, err := h.watch.take()
	if err != nil {
		return 0, err
	}
	count, worst := tooSlow(all)
	for _, c := range all {
		if c.took() <= slowest && c.logged > slowest {
			h.held++
			h.slow = append(h.slow, fmt.Sprintf("%s: %v in the SLOWLOG, of which Redis was run for %v at most", chapter, c.logged, c.cpu))
		}
	}
	if worst > h.worst {
		h.worst, h.when = worst, chapter
	}
	h.over += count
	if h.cut && count == 0 {
		return 0, fmt.Errorf("%s: it took longer than %v and no command was slow", chapter, longest)
	}
	h.cut = false
	if count > 0 {
		h.slow = append(h.slow, fmt.Sprintf("%s: %d commands, up to %v", chapter, count, worst))
	}
	return worst, nil
}
