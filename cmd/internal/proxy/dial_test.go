package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// What is checked is the address that is connected to. An address of this machine is reached only where the configuration means
// one, and those at which clouds tell secrets never.
func TestTheAddressThatIsDialledIsChecked(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	free := context.WithValue(t.Context(), dialKey{}, true)
	for _, address := range []string{"127.0.0.1:" + port, "[::ffff:127.0.0.1]:" + port, "localhost:" + port} {
		_, err := dialChecked(t.Context(), "tcp", address)
		require.ErrorIs(t, err, errAddress, address)
		conn, err := dialChecked(free, "tcp", address)
		require.NoError(t, err, address)
		require.NoError(t, conn.Close())
	}
	for _, address := range []string{"10.1.2.3:80", "192.168.0.1:80", "[fd00:ec2::254]:80", "[::1]:80", "169.254.169.254:80", "[fe80::1%lo]:80", "0.0.0.0:" + port, "[::ffff:169.254.169.254]:80"} {
		_, err := dialChecked(t.Context(), "tcp", address)
		require.ErrorIs(t, err, errAddress, address)
	}
	for _, address := range []string{"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "0.0.0.0:" + port, "[fe80::1%lo]:80"} {
		_, err := dialChecked(free, "tcp", address)
		require.ErrorIs(t, err, errAddress, address)
	}
}

// The proxy speaks HTTP/2 to an origin that does, and HTTP/1.1 to its client.
func TestOriginsAreSpokenToInHTTP2(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.Header.Get("Authorization"))
	}))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	defer origin.Close()
	host := strings.TrimPrefix(origin.URL, "https://")
	t.Setenv("TEST_TOKENS", "a-secret")
	file := filepath.Join(t.TempDir(), "ration.yaml")
	require.NoError(t, os.WriteFile(file, []byte("budgets: {api: {hosts: ["+strconv.Quote(host)+"], limits: [\"100/1s\"], tokens: [{env: TEST_TOKENS}]}}"), 0o600))
	config, err := Load(file)
	require.NoError(t, err)
	s := &Server{Store: new(ration.MemoryStore)}
	require.NoError(t, s.Use(config))
	s.origins.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	s.origins.TLSClientConfig.RootCAs.AddCert(origin.Certificate())
	front := httptest.NewServer(s)
	defer front.Close()
	resp, err := http.Get(front.URL + "/" + host + "/")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0 Bearer a-secret", string(text))
	require.Equal(t, 1, resp.ProtoMajor)
}
