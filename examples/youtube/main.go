// Youtube spends the 10,000 units that YouTube's Data API gives a project each day,
// from midnight to midnight in California: a write costs 50 of them, a list 1.
//
//	go run ./examples/youtube -writes 190
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

func main() {
	writes := flag.Int("writes", 190, "how many playlists to write")
	lists := flag.Int("lists", 460, "how many lists to get")
	flag.Parse()
	if err := run(context.Background(), *writes, *lists); err != nil {
		fmt.Fprintln(os.Stderr, "youtube:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, writes, lists int) error {
	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	// The preset knows the limit, what a request costs and what answers mean. Where the
	// clocks change a day has 23 or 25 hours, and so has the window.
	youtube, err := presets.Named("youtube")
	if err != nil {
		return err
	}
	budget := &ration.Budget{Name: "youtube", Limits: youtube.Limits, Store: new(ration.MemoryStore)}
	project := ration.NewToken("the project's key")
	client := &http.Client{
		Transport: &ration.Transport{
			Pool:     ration.NewPool(budget, project),
			Provider: youtube,
			Attach:   provider.QueryNamed("key"), // a token of OAuth's goes where the preset has it
		},
		Timeout: 10 * time.Second, // who would rather wait for midnight sets none
	}

	for _, task := range []struct {
		method, path string
		requests     int
	}{
		{http.MethodPut, "/youtube/v3/playlists", writes},
		{http.MethodGet, "/youtube/v3/videos", lists},
		{http.MethodPut, "/youtube/v3/playlists", 1},
	} {
		sent, err := send(ctx, client, task.method, api.URL+task.path, task.requests)
		if err != nil && !errors.Is(err, ration.ErrExhausted) {
			return err
		}
		if err != nil { // nothing was booked for it, and nothing sent
			fmt.Println(err)
		}
		if err := tell(ctx, budget, project, fmt.Sprintf("%3d of %s", sent, task.path)); err != nil {
			return err
		}
	}
	return nil
}

func send(ctx context.Context, client *http.Client, method, url string, requests int) (sent int, err error) {
	for ; sent < requests; sent++ {
		req, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			return sent, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return sent, err
		}
		resp.Body.Close()
	}
	return sent, nil
}

// tell prints what is left, and when there is more, by California's clock and ours.
func tell(ctx context.Context, budget *ration.Budget, project ration.Token, what string) error {
	usage, err := budget.Usage(ctx, project)
	if err != nil {
		return err
	}
	day := usage.Limits[0]
	zone, err := time.LoadLocation(day.Limit.Zone)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d units used, %d left until %s, which is %s here\n", what, day.Used, day.Remaining,
		day.FreeAt.In(zone).Format("15:04 MST"), day.FreeAt.Local().Format("15:04 on Jan 2"))
	return nil
}
