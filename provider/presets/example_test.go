package presets_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ration-go/ration/provider/presets"
)

// What a refusal of GitHub's comes to.
func ExampleNamed() {
	github, err := presets.Named("github")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp := &http.Response{
		StatusCode: http.StatusForbidden,
		Header:     http.Header{"Retry-After": {"60"}, "X-Ratelimit-Remaining": {"4978"}},
		Body:       io.NopCloser(strings.NewReader(`{"message":"You have exceeded a secondary rate limit."}`)),
	}
	feedback := github.ReadResponse(resp, time.Now())
	fmt.Println(feedback.Reason, feedback.Wait.Value, feedback.Remaining.Value)
	_, err = presets.Named("gihub")
	fmt.Println(err)
	// Output:
	// secondary 1m0s 4978
	// ration: no provider is named "gihub": did you mean github?
}
