package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/dashboard"
	"github.com/ration-go/ration/internal/hosts"
)

// checkServed looks at the flags that serve something while the crawl lasts.
func (o *options) checkServed(given map[string]bool) error {
	if !given["serve"] {
		return nil
	}
	if _, _, err := net.SplitHostPort(o.serve); err != nil || !hosts.IsLocal(o.serve) {
		return badf("-serve %q: write HOST:PORT of this machine, such as 127.0.0.1:8300; \"ration serve\" has a password for others", o.serve)
	}
	if o.redis == "" {
		return badf("-serve needs -redis redis://HOST:PORT/DB: the page reads the log there")
	}
	return nil
}

// servePage serves the page to watch the crawl by, and says where. It returns what ends that.
func (c *crawl) servePage() (stop func(), err error) {
	if c.plan.serve == "" {
		return func() {}, nil
	}
	options, err := redisOptions(c.plan.redis)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", c.plan.serve)
	if err != nil {
		return nil, fmt.Errorf("-serve: %w", err)
	}
	client := redis.NewClient(options)
	server := &http.Server{Handler: &dashboard.Handler{Store: &ration.RedisStore{Client: client}}, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	c.note(fmt.Sprintf("http://%s/ shows the fleet", listener.Addr()))
	return func() { _, _ = server.Close(), client.Close() }, nil
}
