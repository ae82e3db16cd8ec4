// Youtube spends the 10,000 units that YouTube's Data API gives a project each day,
// from midnight to midnight in California: a search costs 100 of them, a list 1.
//
//	go run ./examples/youtube -searches 95
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/ration-go/ration"
)

const pacific = "America/Los_Angeles"

func main() {
	searches := flag.Int("searches", 95, "how many searches to make")
	lists := flag.Int("lists", 420, "how many lists to get")
	flag.Parse()
	if err := run(context.Background(), *searches, *lists); err != nil {
		fmt.Fprintln(os.Stderr, "youtube:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, searches, lists int) error {
	// Your provider stands here.
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()

	// Where the clocks change a day there has 23 or 25 hours, and so has the window.
	day := ration.PerDay(10_000).Using(ration.FixedWindow)
	day.Zone = pacific
	budget := &ration.Budget{Name: "youtube", Limits: []ration.Limit{day}, Store: new(ration.MemoryStore)}
	project := ration.NewToken("the project's key")
	client := &http.Client{
		Transport: &ration.Transport{
			Pool:   ration.NewPool(budget, project),
			Attach: ration.QueryNamed("key"),
			Cost:   cost,
		},
		Timeout: 10 * time.Second, // who would rather wait for midnight sets none
	}

	for _, task := range []struct {
		path     string
		requests int
	}{{"/youtube/v3/search", searches}, {"/youtube/v3/videos", lists}, {"/youtube/v3/search", 1}} {
		sent, err := send(client, api.URL+task.path, task.requests)
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

// cost is what YouTube's documentation says.
func cost(r *http.Request) int {
	if strings.HasSuffix(r.URL.Path, "/search") {
		return 100
	}
	return 1
}

func send(client *http.Client, url string, requests int) (sent int, err error) {
	for ; sent < requests; sent++ {
		resp, err := client.Get(url)
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
	zone, err := time.LoadLocation(pacific)
	if err != nil {
		return err
	}
	day := usage.Limits[0]
	fmt.Printf("%s: %d units used, %d left until %s, which is %s here\n", what, day.Used, day.Remaining,
		day.FreeAt.In(zone).Format("15:04 MST"), day.FreeAt.Local().Format("15:04 on Jan 2"))
	return nil
}
