package fleets_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/simulated"
)

// A fleetProcess is a running internal/testkit/fleet.
type fleetProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startFleet starts one process of the program with an order.
func startFleet(t *testing.T, program string, order map[string]any) *fleetProcess {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, json.NewEncoder(in).Encode(order))
	return &fleetProcess{cmd: cmd, in: in, out: bufio.NewReader(out)}
}

// buildFleet builds the program of internal/testkit/fleet and returns its path.
func buildFleet(t *testing.T) string {
	t.Helper()
	return buildProgram(t, "internal/testkit/fleet")
}

// buildProgram builds the program of a folder of this module and returns its path.
func buildProgram(t *testing.T, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(folder))
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/ration-go/ration/"+folder).CombinedOutput()
	require.NoError(t, err, "%s", built)
	return program
}

// fleetReport returns what the provider at an address has seen.
func fleetReport(t *testing.T, address string) (report simulated.Report) {
	t.Helper()
	at, err := url.Parse(address)
	require.NoError(t, err)
	resp, err := http.Get(at.Scheme + "://" + at.Host + simulated.ReportPath)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&report))
	return report
}
