package fleets_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// The demo at its full size, as a reader of README.md runs it: it is judged by its provider,
// and ends by time.
func TestTheDemoUsesItsQuotaAndIsNeverRefused(t *testing.T) {
	server := redistest.Start(t)
	cmd := exec.CommandContext(t.Context(), buildProgram(t, "cmd/crawler-demo"),
		"-redis", "redis://"+server.Addr+"/0", "-processes", "4", "-json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() == 3 {
		t.Skip("this machine is too busy to judge")
	}
	require.NoError(t, err, "%s%s", out, stderr.Bytes())
	var summary struct {
		Verdict     string  `json:"verdict"`
		Requests    int     `json:"requests"`
		Refused     int     `json:"refused"`
		Left        int     `json:"left"`
		Quota       float64 `json:"quota_used"`
		ElapsedSecs float64 `json:"elapsed_s"`
		Judge       struct {
			Accepted int `json:"accepted"`
			Refused  int `json:"refused"`
		} `json:"judge"`
	}
	require.NoError(t, json.Unmarshal(out, &summary))
	t.Logf("%s: %d calls in %.1f s", summary.Verdict, summary.Requests, summary.ElapsedSecs)
	require.Zero(t, summary.Refused+summary.Judge.Refused+summary.Left)
	require.Equal(t, summary.Requests, summary.Judge.Accepted)
	require.GreaterOrEqual(t, summary.Quota, 0.98)
}
