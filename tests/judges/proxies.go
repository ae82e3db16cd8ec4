package judges

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nginx is a judge of nginx's limit_req.
func nginx(perSecond, burst int) func(testing.TB, *pages) string {
	return func(t testing.TB, p *pages) string {
		return proxy(t, p, "nginx", func(dir, listen, backend string) (config string, args []string) {
			return fmt.Sprintf(`daemon off;
worker_processes 1;
pid %[1]s/pid;
error_log %[1]s/error.log crit;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	limit_req_zone $http_authorization zone=tokens:1m rate=%[2]dr/s;
	limit_req_status 429;
	upstream pages { server %[5]s; keepalive 64; }
	server {
		listen %[4]s;
		location / {
			limit_req zone=tokens burst=%[3]d nodelay;
			proxy_pass http://pages;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			error_page 429 = @refused;
		}
		location @refused {
			proxy_pass http://pages;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header X-Refused 1;
		}
	}
}
`, dir, perSecond, burst, listen, backend), []string{"-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", filepath.Join(dir, "config")}
		})
	}
}

// haproxy is a judge of HAProxy's http_req_rate: calls that it denies count too.
func haproxy(most int, length time.Duration) func(testing.TB, *pages) string {
	return func(t testing.TB, p *pages) string {
		return proxy(t, p, "haproxy", func(dir, listen, backend string) (config string, args []string) {
			return fmt.Sprintf(`global
	maxconn 1000
defaults
	mode http
	timeout connect 5s
	timeout client 60s
	timeout server 60s
frontend tokens
	bind %s
	stick-table type string len 64 size 10k expire 1m store http_req_rate(%ds)
	http-request track-sc0 req.hdr(Authorization)
	http-request set-header X-Refused 1 if { sc_http_req_rate(0) gt %d }
	default_backend pages
backend pages
	server pages %s
`, listen, int(length.Seconds()), most, backend), []string{"-f", filepath.Join(dir, "config"), "-db"}
		})
	}
}

// proxy runs a program with a configuration in front of the pages, and returns its address.
func proxy(t testing.TB, p *pages, program string, configure func(dir, listen, backend string) (config string, args []string)) (url string) {
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed: install Debian's package %[1]s", program)
	}
	dir, listen := t.TempDir(), freeAddress(t)
	config, args := configure(dir, listen, strings.TrimPrefix(p.serve(t), "http://"))
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + listen + "/")
		if err == nil {
			_ = resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v", program, err)
		}
	}
	p.mu.Lock()
	p.served, p.refused = nil, nil // that was this question
	p.mu.Unlock()
	return "http://" + listen
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
