package proxy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/hosts"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A Server is the proxy. It answers
//
//   - /HOST/PATH and, as a forward proxy, http://HOST/PATH: the request is sent to HOST once a slot of its budget has come;
//   - POST /v1/take and /v1/report, for programs that send their requests themselves;
//   - /healthz, and /metrics with what each caller did.
//
// Only the hosts of the configuration are reached. What the server answers itself is application/problem+json and has the header
// Ration-Reason; the origin's answers pass as they are, and never have it.
//
// Set the fields before [Server.Use]. A Server is safe for concurrent use.
type Server struct {
	// Store keeps the logs of all budgets. Required.
	Store ration.Store
	// Page answers the addresses below /ration/ and adds to /metrics. Nil: there is no page.
	Page http.Handler
	// Log gets what happens to the budgets. Nil: nothing is logged.
	Log *slog.Logger
	// Key returns the key by which grants are signed that leave the process: the same for all proxies of a fleet, so that each takes
	// the reports of the others' grants. Nil: this process has one of its own.
	Key func(context.Context) ([]byte, error)

	routes  atomic.Pointer[routes]
	using   sync.Mutex // held by Use
	once    sync.Once
	origins *http.Transport
	reverse *httputil.ReverseProxy
	callers callers
	grants  grants

	sealing chan struct{} // has one while somebody uses sealed
	sealed  seal          // nil: not known yet
	ending  context.Context
	ends    context.CancelFunc // ends ending
}

// Routes are where requests go under one configuration. They are not changed after they were made.
type routes struct {
	config  *Config
	budgets map[string]*budget
	hosts   map[string]route
}

// A route is a host and the budget that its requests spend.
type route struct {
	target
	budget *budget
}

// A budget is one of the configuration, in use.
type budget struct {
	name    string
	config  *Budget
	targets []target
	quota   *ration.Budget
	pool    *ration.Pool
	sends   *ration.Transport // requests
	hands   *ration.Transport // out slots
	tokens  []sourced
	left    remaining
	inQuery bool // tokens are attached to the query
}

// A sourced token is one, and where its secrets come from.
type sourced struct {
	ration.Token
	from Token
}

// Use takes a configuration into use, at first or in place of another: requests that are under way go on as they began. After an
// error the one before stays.
func (s *Server) Use(c *Config) error {
	s.once.Do(s.begin)
	s.using.Lock()
	defer s.using.Unlock()
	before := s.routes.Load()
	next := &routes{config: c, budgets: make(map[string]*budget), hosts: make(map[string]route)}
	if before != nil {
		if old := before.config; old.Listen != c.Listen || old.Redis != c.Redis || !reflect.DeepEqual(old.TLS, c.TLS) {
			return errors.New("listen, redis and tls are read at the start only: restart the proxy")
		}
	}
	type change struct {
		b      *budget
		tokens []sourced
	}
	var changes []change // which are made when nothing can fail any more
	for name, config := range c.Budgets {
		tokens, err := tokensOf(config.Tokens)
		if err != nil {
			return fmt.Errorf("budgets.%s.%w", name, err)
		}
		var b *budget
		if before != nil {
			b = before.budgets[name]
		}
		if b == nil || !b.config.isSame(config) {
			if b != nil && b.config.Revision == config.Revision && (b.config.Margin != config.Margin || b.config.Preset != config.Preset || !slices.Equal(b.config.Limits, config.Limits)) {
				return fmt.Errorf("budgets.%s.revision: limits, margin or preset are others: raise it, so that all proxies agree", name)
			}
			if b, err = s.newBudget(name, config, tokens); err != nil {
				return err
			}
		}
		changes = append(changes, change{b, tokens})
		next.budgets[name] = b
		for _, t := range b.targets {
			next.hosts[t.host] = route{t, b}
		}
	}
	for _, one := range changes {
		one.b.setTokens(one.tokens)
	}
	s.routes.Store(next)
	if before != nil {
		for name, b := range before.budgets {
			if next.budgets[name] != b {
				b.quota.Leave()
			}
		}
	}
	return nil
}

// isSame reports whether two budgets differ in nothing but their tokens.
func (b *Budget) isSame(other *Budget) bool {
	x, y := *b, *other
	x.Tokens, y.Tokens = nil, nil
	return reflect.DeepEqual(x, y)
}

// answerWithin is how long an origin may take to begin its answer: language models take minutes.
const answerWithin = 10 * time.Minute

func (s *Server) begin() {
	s.origins = http.DefaultTransport.(*http.Transport).Clone()
	s.origins.DialContext = dialChecked
	s.origins.ForceAttemptHTTP2 = true
	s.origins.DisableCompression = true // the origin's answer passes as it is
	s.origins.MaxIdleConnsPerHost = 256
	s.origins.MaxIdleConns = 1024
	s.origins.ResponseHeaderTimeout = answerWithin
	s.origins.Proxy = nil // the address that is checked is the origin's
	s.reverse = &httputil.ReverseProxy{Rewrite: rewrite, Transport: transportOf{}, ModifyResponse: s.answered, ErrorHandler: s.failed,
		FlushInterval: -1, BufferPool: new(buffers), ErrorLog: slog.NewLogLogger(cmp.Or(s.Log, slog.New(slog.DiscardHandler)).Handler(), slog.LevelDebug)}
	s.grants.waiting = make(map[string]*held)
	s.sealing = make(chan struct{}, 1)
	s.ending, s.ends = context.WithCancel(context.Background())
	s.callers.counts = make(map[callerKey]*callerCounts)
}

// Buffers are what bodies are copied through.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if kept, is := b.pool.Get().(*[]byte); is {
		return *kept
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(one []byte) { b.pool.Put(&one) }

func (s *Server) newBudget(name string, config *Budget, tokens []sourced) (*budget, error) {
	limits, err := config.limits()
	if err != nil {
		return nil, fmt.Errorf("budgets.%s.%w", name, err)
	}
	described, err := config.described()
	if err != nil {
		return nil, fmt.Errorf("budgets.%s.%w", name, err)
	}
	quota := &ration.Budget{Name: name, Limits: limits, Revision: config.Revision, EstimateBy: config.Estimate, Margin: time.Duration(config.Margin), Store: s.Store, Logger: s.Log}
	// Tokens that a pool begins with stay quarantined. One that is added later counts as mended.
	b := &budget{name: name, config: config, quota: quota, tokens: tokens}
	plain := make([]ration.Token, 0, len(tokens))
	for _, t := range tokens {
		plain = append(plain, t.Token)
	}
	b.pool = ration.NewPool(quota, plain...)
	if b.targets, err = config.targets(); err != nil {
		return nil, fmt.Errorf("budgets.%s.%w", name, err)
	}
	var names []string
	for _, t := range b.targets {
		names = append(names, t.host)
	}
	attach, err := config.attach()
	if err != nil {
		return nil, fmt.Errorf("budgets.%s.%w", name, err)
	}
	if attach == nil {
		attach = described.Attach
	}
	if attach == nil {
		attach = provider.Bearer
	}
	b.inQuery = isInQuery(attach)
	attach = remembering(attach)
	b.sends = &ration.Transport{Base: s.origins, Attach: attach, Pool: b.pool, Hosts: names, Provider: described, ReplaceAuthorization: true, OnGrant: onGrant}
	b.hands = &ration.Transport{Base: handOver{}, Attach: attach, Pool: b.pool, Hosts: names, Provider: described, OnGrant: onGrant}
	return b, nil
}

// setTokens has the pool hold these tokens and no others. It is never without any meanwhile.
func (b *budget) setTokens(tokens []sourced) {
	for _, t := range tokens {
		if !slices.ContainsFunc(b.tokens, func(one sourced) bool {
			return one.ID() == t.ID() && one.Label == t.Label && reflect.DeepEqual(one.from, t.from)
		}) {
			b.pool.Add(t.Token) // in place of one with its ID
		}
	}
	for _, t := range b.tokens {
		if !slices.ContainsFunc(tokens, func(one sourced) bool { return one.ID() == t.ID() }) {
			b.pool.Remove(t.Token)
		}
	}
	b.tokens = tokens
}

// tokensOf reads the secrets, or where they come from.
func tokensOf(configs []Token) (tokens []sourced, err error) {
	for i, config := range configs {
		var secrets []string
		switch {
		case config.Env != "":
			secrets = strings.FieldsFunc(os.Getenv(config.Env), func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
			if len(secrets) == 0 {
				return nil, fmt.Errorf("tokens[%d].env: the environment has no %s", i, config.Env)
			}
		case config.File != "":
			text, err := os.ReadFile(config.File)
			if err != nil {
				return nil, fmt.Errorf("tokens[%d].file: %w", i, err)
			}
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					secrets = append(secrets, line)
				}
			}
			if len(secrets) == 0 {
				return nil, fmt.Errorf("tokens[%d].file: %s has no secret", i, config.File)
			}
		default:
			t := ration.TokenFrom(cmp.Or(config.ID, strings.Join(config.Command, " ")), config.run)
			t.Label = config.Label
			tokens = append(tokens, sourced{t, config})
		}
		for n, secret := range secrets {
			t := ration.NewToken(secret)
			if t.Label = config.Label; t.Label != "" && len(secrets) > 1 {
				t.Label = fmt.Sprintf("%s-%d", t.Label, n+1)
			}
			if !slices.ContainsFunc(tokens, func(other sourced) bool { return other.ID() == t.ID() }) {
				tokens = append(tokens, sourced{Token: t}) // whose secret is its ID
			}
		}
	}
	return tokens, nil
}

// run is the source of secrets that a command prints.
func (t Token) run(ctx context.Context) (secret string, expires time.Time, err error) {
	command := exec.CommandContext(ctx, t.Command[0], t.Command[1:]...)
	command.WaitDelay = time.Second // a child that has the output may live on
	out, err := command.Output()
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%s: %w", t.Command[0], err) // what it printed may have a secret
	}
	if t.Every > 0 {
		expires = time.Now().Add(time.Duration(t.Every))
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(line), expires, nil
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	routes := s.routes.Load()
	if routes == nil {
		problem{http.StatusServiceUnavailable, reasonInternal, "no configuration is in use", 0}.write(w)
		return
	}
	isForward := r.URL.IsAbs()
	if r.Method == http.MethodConnect {
		problem{http.StatusNotImplemented, reasonUpgrade, "the proxy has to read what it counts: ask for http://HOST/... through it, and it speaks TLS to the host", 0}.write(w)
		return
	}
	if r.Method == http.MethodTrace {
		problem{http.StatusMethodNotAllowed, reasonRequest, "an answer to TRACE has the token in it", 0}.write(w)
		return
	}
	if s.ending.Err() != nil && (isForward || r.URL.Path != "/v1/report" && r.URL.Path != "/metrics") {
		w.Header().Set("Connection", "close")
		proxyEnds.write(w)
		return
	}
	if !isForward && r.URL.Path == "/healthz" {
		s.healthz(w, r)
		return
	}
	if p, refused := routes.admit(r, isForward); refused {
		p.write(w)
		return
	}
	path := r.URL.EscapedPath()
	switch {
	case isForward:
		s.forward(w, r, routes, r.URL.Host, path)
	case path == "/v1/take":
		s.take(w, r, routes)
	case path == "/v1/report":
		s.report(w, r, routes)
	case path == "/metrics":
		s.metrics(w, r)
	case s.Page != nil && (path == "/" || strings.HasPrefix(path, "/ration/")):
		if path == "/" {
			http.Redirect(w, r, "/ration/", http.StatusFound)
			return
		}
		http.StripPrefix("/ration", s.Page).ServeHTTP(w, r)
	default:
		host, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		s.forward(w, r, routes, host, path[min(len(path), 1+len(host)):])
	}
}

// admit says why a client gets nothing at all.
func (t *routes) admit(r *http.Request, isForward bool) (p problem, refused bool) {
	given := r.Header.Get("Ration-Secret")
	r.Header.Del("Ration-Secret")
	if want := t.config.Secret; want != "" {
		x, y := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
		if subtle.ConstantTimeCompare(x[:], y[:]) != 1 {
			return problem{http.StatusForbidden, reasonAuth, "the proxy wants its secret in the header Ration-Secret", 0}, true
		}
	}
	if isForward {
		return p, false
	}
	// A site must not make its own name mean this machine, nor have a browser spend the quota.
	name := &url.URL{Scheme: "http", Host: r.Host}
	if t.config.Secret == "" && t.config.TLS == nil && !strings.HasPrefix(t.config.Listen, "unix:") && !hosts.IsLocal(r.Host) && !hosts.Has(t.config.Names, name) {
		return problem{http.StatusMisdirectedRequest, reasonRequest, fmt.Sprintf("the proxy is not asked for as %q: names in its configuration allows it", r.Host), 0}, true
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		return problem{http.StatusForbidden, reasonRequest, "another site has had a browser ask for this", 0}, true
	}
	return p, false
}

// End ends the service: who waits for a slot, and who comes, is told to come again, and reports are taken until no grant is out, or the
// context ends. Requests that are under way go on.
func (s *Server) End(ctx context.Context) {
	s.once.Do(s.begin)
	s.ends()
	s.grants.settle(ctx)
}

var proxyEnds = problem{http.StatusServiceUnavailable, reasonEnding, "the proxy ends: ask again, and another one answers, or this one when it is started again", time.Second}

func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	if !s.storeAnswers(r.Context()) {
		storeIsDown.write(w)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

var storeIsDown = problem{http.StatusServiceUnavailable, reasonStore, "the store does not answer", time.Second}

// storeAnswers asks the store for something.
func (s *Server) storeAnswers(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	for name := range s.routes.Load().budgets {
		_, err := s.Store.Status(ctx, store.StatusRequest{Budget: name})
		return err == nil // all are in one store
	}
	return true
}

// whyNot returns what is answered to a request whose context it is. A wait that was too long was for the quota, or for a store
// that does not answer.
func (s *Server) whyNot(ctx context.Context, err error) problem {
	if errors.Is(context.Cause(ctx), errEnding) {
		return proxyEnds
	}
	if cause := context.Cause(ctx); errors.Is(cause, errWaitedLongest) && !errors.Is(err, ration.ErrStoreUnavailable) {
		if err = cause; !s.storeAnswers(context.WithoutCancel(ctx)) {
			return storeIsDown
		}
	}
	p := problemOf(err)
	if w := waitOf(ctx); p.reason == reasonOrigin && w != nil && !w.isSent.Load() {
		p.status, p.reason = http.StatusBadRequest, reasonRequest // no slot was given: a cost that no limit admits, say
	}
	return p
}

// Hosts returns the hosts that requests may be sent to, sorted.
func (s *Server) Hosts() []string { return slices.Sorted(maps.Keys(s.routes.Load().hosts)) }
