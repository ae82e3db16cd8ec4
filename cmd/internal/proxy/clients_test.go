package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The clients of other languages, each against a proxy and an origin.
func TestClientsOfOtherLanguages(t *testing.T) {
	_, front, host := serve(t, simple+"    hand_out_tokens: true\n", echo)
	run := func(t *testing.T, dir string, command ...string) string {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = "../../../clients/" + dir
		cmd.Env = append(os.Environ(), "RATION_PROXY="+front, "RATION_ORIGIN=http://"+host, "PYTHONDONTWRITEBYTECODE=1", "http_proxy=http://127.0.0.1:1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	t.Run("python", func(t *testing.T) {
		python := "/usr/bin/python3" // of the system, which has its packages
		if _, err := exec.LookPath(python); err != nil {
			python = "python3"
		}
		if _, err := exec.LookPath(python); err != nil {
			t.Skip("python3 is not installed")
		}
		if out := run(t, "python", python, "-m", "unittest", "-v", "test_ration"); strings.Contains(out, "skipped") {
			t.Skip("python3-requests or python3-httpx is not installed")
		}
		_, text := do(t, "GET", front+"/metrics")
		for _, caller := range []string{"urllib", "requests", "httpx"} {
			require.Contains(t, text, fmt.Sprintf(`caller="%s",code="2xx"`, caller))
		}
	})
	t.Run("node", func(t *testing.T) {
		if _, err := exec.LookPath("node"); err != nil {
			t.Skip("node is not installed")
		}
		run(t, "node", "node", "--test")
	})
	t.Run("curl", func(t *testing.T) {
		if _, err := exec.LookPath("curl"); err != nil {
			t.Skip("curl is not installed")
		}
		require.Regexp(t, `^GET /echo Bearer [ab]-secret$`, run(t, "", "curl", "-sS", "-H", "Ration-Caller: curl", "--noproxy", "*", front+"/"+host+"/echo"))
		require.Regexp(t, `^GET /echo Bearer [ab]-secret$`, run(t, "", "curl", "-sS", "-x", front, "--noproxy", "", "http://"+host+"/echo"))
	})
}

// echo is an origin that says what it got.
func echo(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/body":
		_, _ = io.Copy(w, r.Body)
	case "/gone":
		w.WriteHeader(http.StatusGone)
	case "/redirect":
		http.Redirect(w, r, "/echo", http.StatusFound)
	default:
		fmt.Fprintf(w, "%s %s %s%s", r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Ration-Caller"))
	}
}
