// Package proxy gives programs in any language the quota of a fleet: an HTTP proxy that sends their requests through a
// ration.Transport, and an API that hands out slots to programs that send their own. See [Server].
package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/cmd/internal/attach"
	"github.com/ration-go/ration/internal/hosts"
	"github.com/ration-go/ration/internal/spelling"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
	"github.com/ration-go/ration/store"
)

// A Config is the proxy's configuration: one YAML file, which docs/ration.schema.json describes. In every text ${NAME}
// stands for an environment variable.
type Config struct {
	Listen        string             `yaml:"listen"`        // HOST:PORT, or unix:PATH; "": 127.0.0.1:8080
	Names         []string           `yaml:"names"`         // by which clients may ask for the proxy, beside those of this machine
	Redis         string             `yaml:"redis"`         // URL; "": the memory of this process, which no other shares
	Secret        string             `yaml:"secret"`        // that clients send as Ration-Secret; "": none
	TLS           *TLS               `yaml:"tls"`           // nil: plain HTTP
	Authorization string             `yaml:"authorization"` // of a client's own Authorization: "refuse", or "drop"; "": refuse
	MaxWait       Duration           `yaml:"max_wait"`      // the longest that a client waits for its slot; 0: 50 s
	Budgets       map[string]*Budget `yaml:"budgets"`       // by name
}

// TLS is how the proxy proves who it is, and clients do.
type TLS struct {
	Cert     string `yaml:"cert"`      // a PEM file
	Key      string `yaml:"key"`       // a PEM file
	ClientCA string `yaml:"client_ca"` // a PEM file of those that sign the certificates of clients; "": clients need none
}

// A Budget is a quota, the hosts whose requests spend it, and the tokens.
type Budget struct {
	Hosts    []string `yaml:"hosts"`           // "api.github.com", or with a scheme "http://127.0.0.1:9000"; without one: https
	Preset   string   `yaml:"preset"`          // what "ration provider" lists; "": the headers that most APIs use
	Auth     string   `yaml:"auth"`            // how a token is attached: "bearer", "header:NAME" or "query:NAME"; "": as the preset does, or bearer
	Limits   []string `yaml:"limits"`          // "5000/1h"; empty: those of the preset
	Estimate string   `yaml:"estimate_by"`     // as Budget.EstimateBy; "": what a request says is booked
	Revision int      `yaml:"revision"`        // to be raised with other limits
	Margin   Duration `yaml:"margin"`          // as Budget.Margin; 0: by the window
	Tokens   []Token  `yaml:"tokens"`          // at least one
	HandOut  bool     `yaml:"hand_out_tokens"` // whether /v1/take tells the secret
	Private  bool     `yaml:"private"`         // whether a name may be of a private address
}

// A Token says where secrets come from: one of Env, File and Command.
type Token struct {
	Env     string   `yaml:"env"`     // a variable with secrets, separated by commas or spaces
	File    string   `yaml:"file"`    // a secret in each line; it is read again when it changes
	Command []string `yaml:"command"` // prints a secret
	Every   Duration `yaml:"every"`   // how long what a command prints is good for; 0: until it is rejected
	ID      string   `yaml:"id"`      // names the user of a command's secrets; "": the command
	Label   string   `yaml:"label"`   // what people call the account
}

// A Duration is written as "50s".
type Duration time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	length, err := time.ParseDuration(string(text))
	if err == nil && length < 0 {
		err = errors.New("is negative")
	}
	*d = Duration(length)
	if err != nil {
		return fmt.Errorf("%q: write a duration such as 50s", text)
	}
	return nil
}

const (
	defaultListen  = "127.0.0.1:8080"
	defaultMaxWait = Duration(50 * time.Second)
	refuse, drop   = "refuse", "drop"
)

// Load reads and checks a configuration. An error names the line, or the key and what to write there.
func Load(file string) (*Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("%s: %s", file, withNearest(yaml.FormatError(err, false, false)))
	}
	if err := expand(reflect.ValueOf(c), ""); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c.Listen, c.Authorization, c.MaxWait = cmp.Or(c.Listen, defaultListen), cmp.Or(c.Authorization, refuse), cmp.Or(c.MaxWait, defaultMaxWait)
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

var unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)

// withNearest adds to an error about an unknown key the known one that is nearest.
func withNearest(text string) string {
	found := unknownField.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	nearest, least := "", 4
	for _, known := range knownKeys() {
		if d := spelling.Distance(found[1], known); d < least {
			nearest, least = known, d
		}
	}
	hint := "the keys are " + strings.Join(knownKeys(), ", ")
	if nearest != "" {
		hint = fmt.Sprintf("did you mean %q?", nearest)
	}
	return strings.Replace(text, found[0], found[0]+": "+hint, 1)
}

// knownKeys returns all keys that a configuration may have, of all its parts.
func knownKeys() (keys []string) {
	for _, part := range []any{Config{}, TLS{}, Budget{}, Token{}} {
		for field := range reflect.TypeOf(part).Fields() {
			keys = append(keys, field.Tag.Get("yaml"))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand puts environment variables in place of their names, in all texts of a value.
func expand(v reflect.Value, at string) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return expand(v.Elem(), at)
	case reflect.Struct:
		for field, value := range v.Fields() {
			if err := expand(value, strings.TrimPrefix(at+"."+field.Tag.Get("yaml"), ".")); err != nil {
				return err
			}
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			if err := expand(value, at+"."+key.String()); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := expand(v.Index(i), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case reflect.String:
		for _, found := range variable.FindAllStringSubmatch(v.String(), -1) {
			value, set := os.LookupEnv(found[1])
			if !set {
				return fmt.Errorf("%s: the environment has no %s", at, found[1])
			}
			if strings.TrimSpace(value) == "" { // a secret that is empty would be none
				return fmt.Errorf("%s: %s is empty in the environment: set it, or leave %[1]s out", at, found[1])
			}
			v.SetString(strings.ReplaceAll(v.String(), found[0], value))
		}
	}
	return nil
}

// check returns an error about what a configuration means.
func (c *Config) check() error {
	if path, isSocket := strings.CutPrefix(c.Listen, "unix:"); isSocket {
		if path == "" {
			return errors.New("listen: write unix:PATH")
		}
	} else {
		_, port, err := net.SplitHostPort(c.Listen)
		if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
			return fmt.Errorf("listen: %q: write HOST:PORT such as %s, or unix:PATH", c.Listen, defaultListen)
		}
		if !hosts.IsLocal(c.Listen) && c.Secret == "" && (c.TLS == nil || c.TLS.ClientCA == "") {
			return fmt.Errorf("listen: %s: anybody who reaches it could spend your quota: set secret, or tls.client_ca, or listen on %s", c.Listen, defaultListen)
		}
	}
	if c.TLS != nil && (c.TLS.Cert == "" || c.TLS.Key == "") {
		return errors.New("tls: write both cert and key")
	}
	if c.Authorization != refuse && c.Authorization != drop {
		return fmt.Errorf("authorization: %q: write refuse or drop", c.Authorization)
	}
	if len(c.Budgets) == 0 {
		return errors.New("budgets: there is none: nothing could be sent")
	}
	seen := make(map[string]string)
	for name, b := range c.Budgets {
		if b == nil {
			return fmt.Errorf("budgets.%s: it is empty: write hosts, limits and tokens", name)
		}
		if err := b.check(name); err != nil {
			return fmt.Errorf("budgets.%s.%w", name, err)
		}
		targets, err := b.targets()
		if err != nil {
			return fmt.Errorf("budgets.%s.%w", name, err)
		}
		for i, t := range targets {
			if other, found := seen[t.host]; found {
				return fmt.Errorf("budgets.%s.hosts: %s is of the budget %q too: a host has one budget", name, b.Hosts[i], other)
			}
			seen[t.host] = name
		}
	}
	return nil
}

func (b *Budget) check(name string) error {
	if err := store.ValidateBudgetName(name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if len(b.Hosts) == 0 {
		return errors.New("hosts: there is none: nothing could be sent")
	}
	if _, err := b.limits(); err != nil {
		return err
	}
	if _, err := b.attach(); err != nil {
		return err
	}
	if len(b.Tokens) == 0 {
		return errors.New("tokens: there is none: write env, file or command")
	}
	for i, t := range b.Tokens {
		ways := 0
		for _, is := range []bool{t.Env != "", t.File != "", len(t.Command) > 0} {
			if is {
				ways++
			}
		}
		if ways != 1 {
			return fmt.Errorf("tokens[%d]: write one of env, file and command", i)
		}
	}
	return nil
}

// attach returns how a token is attached; nil: as the preset does, or as Bearer.
func (b *Budget) attach() (provider.Attach, error) {
	if b.Auth == "" {
		return nil, nil
	}
	kind, name, ok := attach.Parse(b.Auth)
	if !ok {
		return nil, fmt.Errorf("auth: %q: write bearer, header:NAME or query:NAME", b.Auth)
	}
	return attach.As(kind, name), nil
}

// described returns the preset; without one, what reads the headers that most APIs use.
func (b *Budget) described() (*provider.Provider, error) {
	if b.Preset == "" {
		return new(provider.Provider), nil
	}
	p, err := presets.Named(b.Preset)
	if err != nil {
		return nil, fmt.Errorf("preset: %q is none: \"ration provider\" lists them", b.Preset)
	}
	return p, nil
}

// limits returns those of the budget, or of its preset.
func (b *Budget) limits() (limits []limit.Limit, err error) {
	described, err := b.described()
	if err != nil {
		return nil, err
	}
	if len(b.Limits) == 0 {
		limits = described.Limits
	}
	for i, text := range b.Limits {
		l, err := ration.ParseLimit(text)
		if err != nil {
			return nil, fmt.Errorf("limits[%d]: %s", i, strings.TrimPrefix(err.Error(), "ration: "))
		}
		limits = append(limits, l)
	}
	if len(limits) == 0 {
		return nil, errors.New(`limits: there is none, and no preset has any: write such as ["5000/1h"]`)
	}
	return limits, nil
}

// A target is a host to which requests may be sent.
type target struct {
	scheme, host string // the host in lower case, with its port unless that is the scheme's
	named        bool   // it is an address, or localhost: what was named is what is meant
}

// targets returns the hosts.
func (b *Budget) targets() ([]target, error) {
	all := make([]target, len(b.Hosts))
	for i, host := range b.Hosts {
		var err error
		if all[i], err = parseHost(host); err != nil {
			return nil, fmt.Errorf("hosts[%d]: %w", i, err)
		}
	}
	return all, nil
}

// parseHost reads a host of the configuration.
func parseHost(text string) (t target, err error) {
	address := text
	if !strings.Contains(text, "://") {
		address = "https://" + text
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http" {
		return t, fmt.Errorf("%q: write a host such as api.example.com, or with http:// before it", text)
	}
	name := u.Hostname()
	_, notIP := netip.ParseAddr(name)
	if notIP != nil && !strings.Contains(name, ".") && !strings.EqualFold(name, "localhost") {
		return t, fmt.Errorf("%q: a name without a dot could be one of the proxy's own paths", text)
	}
	return target{u.Scheme, canonical(u.Host, u.Scheme), notIP == nil || strings.EqualFold(name, "localhost")}, nil
}

// canonical returns a host as targets have it: in lower case, without a dot at its end, and without the scheme's port.
func canonical(host, scheme string) string {
	host = strings.ToLower(host)
	host = strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[scheme])
	return strings.TrimSuffix(host, ".")
}
