package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

var errNoClient = errors.New("ration: RedisStore.Client is nil: set it to a redis.UniversalClient")

// Use has the store use a client. A nil pointer is none. From the first time on go-redis writes nothing by itself: it tells of each
// connection that fails, and a budget tells of the outage.
func (s *Store) Use(client redis.UniversalClient) {
	if of := reflect.ValueOf(client); client != nil && of.Kind() == reflect.Pointer && of.IsNil() {
		return
	}
	silence()
	s.Client = client
}

// silence has go-redis write nothing.
var silence = sync.OnceFunc(logging.Disable)

// Validate returns what is wrong with the client, as far as it shows before anything is asked.
func (s *Store) Validate() error {
	if s.Client == nil {
		return errNoClient
	}
	single, is := s.Client.(*redis.Client)
	if !is {
		return nil
	}
	o := single.Options()
	if o.Network == "unix" || o.Dialer != nil && o.Addr == "FailoverClient" {
		return nil
	}
	if _, port, err := net.SplitHostPort(o.Addr); err != nil || port == "" {
		hint := "write HOST:PORT, such as localhost:6379"
		if strings.Contains(o.Addr, "://") {
			hint = "redis.ParseURL makes options of a URL"
		}
		return fmt.Errorf("the address of RedisStore.Client is %q: %s", o.Addr, hint)
	}
	return nil
}

// errNoTLS says that a server that should speak TLS does not.
var errNoTLS = errors.New("this Redis speaks no TLS at that port: leave TLSConfig out of the options of RedisStore.Client, or write redis:// for rediss://")

// speaksNoTLS reports whether the client uses TLS, and its server answers without it: it waits then for the end of what it takes for a
// command, and no handshake ever ends. The server is tried once.
func (s *Store) speaksNoTLS() bool {
	s.triedTLS.Do(func() { s.noTLS = answersWithoutTLS(s.Client) })
	return s.noTLS
}

func answersWithoutTLS(client redis.UniversalClient) bool {
	single, is := client.(*redis.Client)
	if !is || single.Options().TLSConfig == nil || single.Options().Network == "unix" {
		return false
	}
	conn, err := net.DialTimeout("tcp", single.Options().Addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	var first [1]byte
	n, _ := conn.Read(first[:])
	return n == 1 && (first[0] == '+' || first[0] == '-') // a server with TLS sends an alert, or nothing
}

// isCertificate reports whether a handshake failed by who the server says it is, or because it speaks something else.
func isCertificate(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &record)
}
