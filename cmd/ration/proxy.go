package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/cmd/internal/proxy"
	"github.com/ration-go/ration/dashboard"
)

func proxyCommand() *cli.Command {
	return &cli.Command{
		Name: "proxy", Usage: "the fleet's quota for programs in any language",
		Description: `Sends requests to the hosts of a configuration once a slot has come, with a token of
the fleet, and hands out slots to programs that send their own. Ask for
http://127.0.0.1:8080/api.github.com/users/... or have it as http_proxy. What it answers
itself is 503 with the header Ration-Reason, or says what is wrong with the request.

  ration proxy -config ration.yaml
  ration proxy -config ration.yaml -check

The file is read again when it changes, or at SIGHUP. docs/proxy.md describes it.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Value: "ration.yaml", Usage: "FILE: the configuration (default ration.yaml)"},
			&cli.BoolFlag{Name: "check", Usage: "only say whether the configuration is right"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.NArg() > 0 {
				return usagef("proxy takes no arguments: -config names its file")
			}
			file := c.String("config")
			config, err := proxy.Load(file)
			if err != nil {
				return errUsage{err}
			}
			p := &served{Server: &proxy.Server{Store: new(ration.MemoryStore), Log: slog.New(slog.NewTextHandler(c.Root().ErrWriter, nil))}, file: file, config: config}
			if config.Redis != "" {
				client, err := openRedis(config.Redis)
				if err != nil {
					return err
				}
				defer client.Close()
				kept := &ration.RedisStore{Client: client}
				p.Store, p.kept = kept, kept
				page := &dashboard.Handler{Store: kept, Hosts: config.Names, Authorize: func(*http.Request) bool { return true }} // whom the proxy admits
				p.Page = page
				p.Key = func(ctx context.Context) ([]byte, error) { return sharedKey(ctx, client) }
				if !c.Bool("check") {
					go func() { _ = page.Run(ctx) }()
				}
			}
			if err := p.Use(config); err != nil {
				return errUsage{fmt.Errorf("%s: %w", file, err)}
			}
			if c.Bool("check") {
				fmt.Fprintf(c.Root().Writer, "%s is right: %s\n", file, strings.Join(p.Hosts(), ", "))
				return nil
			}
			if err := p.serve(ctx, c); err != nil || p.kept == nil {
				return err
			}
			settling, stop := context.WithTimeout(context.WithoutCancel(ctx), settled)
			defer stop()
			_ = p.kept.Settle(settling) // the fleet finds out by itself otherwise
			return nil
		},
	}
}

// keyOfGrants is the key in Redis of what proxies sign their grants with.
const keyOfGrants = "ration:v2:proxy"

// sharedKey returns what all proxies of a fleet sign their grants with. The first one makes it.
func sharedKey(ctx context.Context, client redis.UniversalClient) ([]byte, error) {
	if err := client.SetNX(ctx, keyOfGrants, rand.Text(), 0).Err(); err != nil {
		return nil, &ration.StoreError{Op: "key", Err: err}
	}
	key, err := client.Get(ctx, keyOfGrants).Bytes()
	if err != nil {
		return nil, &ration.StoreError{Op: "key", Err: err}
	}
	return key, nil
}

// A served is a proxy and the file that it is configured by.
type served struct {
	*proxy.Server
	kept   *ration.RedisStore // nil: the quota is this process's alone
	file   string
	config *proxy.Config
}

const (
	// graceful is how long requests that are under way have at the end.
	graceful = 30 * time.Second
	// settled is how long Redis has then to hear what is left to say.
	settled = 3 * time.Second
)

// serve serves until it is interrupted.
func (p *served) serve(ctx context.Context, c *cli.Command) error {
	listener, err := listen(ctx, p.config)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	if p.config.Redis == "" {
		p.Log.Warn("the quota is this process's alone: set redis, and other processes share it")
	}
	address := listener.Addr().String()
	if !strings.HasPrefix(p.config.Listen, "unix:") {
		scheme := "http://"
		if p.config.TLS != nil {
			scheme = "https://"
		}
		address = scheme + address + "/"
	}
	fmt.Fprintln(c.Root().Writer, address)
	go p.follow(ctx)
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		ending, stop := context.WithTimeout(context.Background(), graceful)
		defer stop()
		p.End(ending)
		// What is being answered has some time also if a report has not come.
		closing, stop := context.WithTimeout(context.WithoutCancel(ending), graceful/6)
		defer stop()
		if ending.Err() == nil {
			closing = ending
		}
		_ = server.Shutdown(closing)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-ended
	return nil
}

// listen opens the address of a configuration.
func listen(ctx context.Context, config *proxy.Config) (net.Listener, error) {
	network, address := "tcp", config.Listen
	if path, isSocket := strings.CutPrefix(address, "unix:"); isSocket {
		network, address = "unix", path
		if info, err := os.Stat(path); err == nil && info.Mode().Type() == os.ModeSocket {
			if other, err := new(net.Dialer).DialContext(ctx, network, path); err == nil {
				_ = other.Close()
				return nil, errUsage{fmt.Errorf("listen: another process listens at %s: stop it, or name another socket", path)}
			}
			_ = os.Remove(path) // of a proxy that was killed
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, errUsage{fmt.Errorf("listen: %w: name another address, or stop what listens there", err)}
	}
	if config.TLS == nil {
		return listener, nil
	}
	certificate, err := tls.LoadX509KeyPair(config.TLS.Cert, config.TLS.Key)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tls: %w", err), listener.Close())
	}
	secured := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if config.TLS.ClientCA != "" {
		text, err := os.ReadFile(config.TLS.ClientCA)
		pool := x509.NewCertPool()
		if err == nil && !pool.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s has no certificate", config.TLS.ClientCA)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("tls.client_ca: %w", err), listener.Close())
		}
		secured.ClientCAs, secured.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return tls.NewListener(listener, secured), nil
}

// lookEvery is how often files are looked at.
const lookEvery = 2 * time.Second

// follow reads the configuration again when a file of it changes, or the process is told to. A wrong one changes nothing.
func (p *served) follow(ctx context.Context) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	defer signal.Stop(told)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	seen := p.edition()
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
		case <-ticker.C:
			if p.edition() == seen {
				continue
			}
		}
		seen = p.edition()
		config, err := proxy.Load(p.file)
		if err == nil {
			p.config = config // its files are looked at from now on, also if one is not there yet
			seen = p.edition()
			err = p.Use(config)
		}
		if err != nil {
			p.Log.Error("the configuration was not taken into use: the one before stays", "err", err)
			continue
		}
		p.Log.Info("the configuration was read again", "hosts", strings.Join(p.Hosts(), ", "))
	}
}

// edition tells files apart that were changed.
func (p *served) edition() (text string) {
	files := []string{p.file}
	for _, b := range p.config.Budgets {
		for _, t := range b.Tokens {
			if t.File != "" {
				files = append(files, t.File)
			}
		}
	}
	var all []string
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			all = append(all, fmt.Sprint(file, info.ModTime().UnixNano(), info.Size()))
		}
	}
	slices.Sort(all) // the order of a map is another each time
	return strings.Join(all, " ")
}
