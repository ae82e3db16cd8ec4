package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/ration-go/ration/internal/jsonprefix"
)

// readInput reads a file, or standard input where the name is "-".
func (a *app) readInput(flag, name string) ([]byte, error) {
	if name == "-" {
		data, err := io.ReadAll(a.stdin)
		if err != nil {
			return nil, badf("-%s -: standard input cannot be read: %w", flag, err)
		}
		return data, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, badf("-%s: %w: name a file that can be read", flag, err)
	}
	return data, nil
}

// What may stand beside a secret in a token file: a comment, which begins the line or comes
// behind a space, and the scheme that the secret has where people copy it from.
var (
	comment      = regexp.MustCompile(`(^|\s)#.*`)
	bearerPrefix = regexp.MustCompile(`(?i)^bearer\s+`)
)

// longestSecret is the longest header that servers take by default (nginx, Apache, Node).
const longestSecret = 8 << 10

// variable is how a file of environment variables names a secret: GITHUB_TOKEN=…, export TOKEN=….
var variable = regexp.MustCompile(`^(?:export\s+)?([A-Z][A-Z0-9_]*|[a-z]+_[a-z0-9_]*)\s*=\s*([^=\s].*)$`)

// tokenName finds the names of variables that have tokens.
var tokenName = regexp.MustCompile(`(?i)token|api_?key|bearer|(?:^|_)pat(?:_|[0-9]|$)`)

// otherSecrets are the names of what stands beside a token in JSON, and is sent to no API.
var otherSecrets = regexp.MustCompile(`(?i)^(?:refresh_?token|id_?token|scopes?|token_?type|expires?(?:_?(?:in|at))?|client_?id|client_?secret)$`)

// readTokens returns the secrets of a file, each once, in its order: one a line, with or without "Bearer" in front, as NAME=SECRET, in quotes,
// or with commas between; or as JSON. Its errors name a line and never what is in it.
func readTokens(name string, data []byte) ([]string, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // a byte order mark
	if text := bytes.TrimSpace(data); len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		return readJSONTokens(name, text)
	}
	var secrets []string
	seen := make(map[string]bool)
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(comment.ReplaceAllString(line, ""))
		if found := variable.FindStringSubmatch(line); found != nil {
			if !tokenName.MatchString(found[1]) {
				return nil, badf("-tokens: %s line %d sets %s, which is no token by its name, and would be sent to the API: "+
					"leave only the tokens in the file, under names with TOKEN or API_KEY in them", name, i+1, found[1])
			}
			line = found[2]
		}
		for one := range strings.SplitSeq(line, ",") {
			secret, err := cleanSecret(one)
			if err != nil {
				return nil, badf("-tokens: %s line %d is not a token: %w", name, i+1, err)
			}
			if secret != "" && !seen[secret] {
				seen[secret] = true
				secrets = append(secrets, secret)
			}
		}
	}
	if len(secrets) == 0 {
		return nil, badf("-tokens: %s has no token in it: write one secret a line", name)
	}
	return secrets, nil
}

// cleanSecret returns a secret without the quotes and the scheme that people copy with it; "" if there is none.
func cleanSecret(text string) (string, error) {
	secret := strings.TrimSpace(text)
	for _, quote := range []string{`"`, "'", "`"} {
		if rest, found := strings.CutPrefix(secret, quote); found {
			inside, closed := strings.CutSuffix(rest, quote)
			if !closed {
				return "", errors.New("it has a quote that does not end")
			}
			secret = strings.TrimSpace(inside)
		}
	}
	secret = bearerPrefix.ReplaceAllString(secret, "")
	switch {
	case strings.EqualFold(secret, "bearer"):
		return "", errors.New("it says Bearer and no secret")
	case len(secret) > longestSecret:
		return "", fmt.Errorf("it has %d bytes, and servers take %d in a header at most", len(secret), longestSecret)
	case strings.ContainsFunc(secret, func(c rune) bool { return c <= ' ' || c == 0x7f || c == utf8.RuneError }):
		return "", errors.New("it has a space or a control character in it")
	case strings.ContainsAny(secret, `"'{}[]`):
		return "", errors.New("it has a quote or a bracket in it: write one secret a line, or all as JSON")
	}
	return secret, nil
}

// readJSONTokens returns the secrets of a JSON file: ["a", "b"], {"ana": "a", "otto": "b"} or [{"token": "a"}].
func readJSONTokens(name string, text []byte) ([]string, error) {
	var secrets []string
	seen := make(map[string]bool)
	var failed error
	add := func(text string) {
		secret, err := cleanSecret(text)
		if err != nil {
			failed = badf("-tokens: %s, secret %d is not a token: %w", name, len(secrets)+1, err)
		}
		if secret != "" && !seen[secret] {
			seen[secret] = true
			secrets = append(secrets, secret)
		}
	}
	if !json.Valid(text) {
		line := 1
		var syntax *json.SyntaxError
		if err := json.Unmarshal(text, new(any)); errors.As(err, &syntax) {
			line += bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		}
		return nil, badf("-tokens: %s line %d is no JSON, which its first character promises: write one secret a line, or [\"SECRET\"]", name, line)
	}
	value := jsonprefix.Parse(text)
	for _, member := range value.Members {
		if otherSecrets.MatchString(member.Name) {
			continue
		}
		if member.Value.Kind == jsonprefix.String {
			add(member.Value.Text)
			continue
		}
		found := member.Value.All("token|access_token|secret|key|api_key|value|password")
		if len(found) == 0 || found[0].Kind != jsonprefix.String {
			return nil, badf("-tokens: %s, entry %d has no secret: write [\"SECRET\"], {\"NAME\": \"SECRET\"} or [{\"token\": \"SECRET\"}]", name, len(secrets)+1)
		}
		add(found[0].Text)
	}
	if failed != nil {
		return nil, failed
	}
	if len(secrets) == 0 {
		return nil, badf("-tokens: %s has no token in it: write one secret a line", name)
	}
	return secrets, nil
}

// readURLs returns the URLs of a list, each once, in its order, without
// the tokens that they hold.
func readURLs(name string, data []byte, c *redactor) ([]string, error) {
	var urls []string
	seen := make(map[string]bool)
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // a byte order mark
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		u, err := parseURL(line)
		if err == nil {
			line, err = c.url(line, u)
		}
		if err != nil {
			return nil, badf("-urls: %s line %d: %w", name, i+1, err)
		}
		if !seen[line] {
			seen[line] = true
			urls = append(urls, line)
		}
	}
	if len(urls) == 0 {
		return nil, badf("-urls: %s has no URL in it: write one a line", name)
	}
	return urls, nil
}

// parseURL reads a URL that can be fetched. Its errors do not repeat it.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		if parse, found := errors.AsType[*url.Error](err); found {
			err = parse.Err
		}
		return nil, fmt.Errorf("not a URL: %w", err)
	case u.Scheme == "":
		return nil, errors.New("not a whole URL: write it with http:// or https:// in front")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the scheme %q is not one that is crawled: write http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	case u.User != nil:
		return nil, errors.New("the URL has a user or password in it, which would be shown: leave it out, and use -auth")
	case strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == utf8.RuneError }):
		return nil, errors.New("the URL has a space or a control character in it: write them as %20 and the like")
	}
	return u, nil
}

// An origin is what a URL's secret may be sent to: a token that was given for
// https://api.example.com is not for its port 80.
func origin(u *url.URL) string { return u.Scheme + "://" + strings.ToLower(u.Host) }

// origins returns those of the list.
func origins(urls []string) map[string]bool {
	all := make(map[string]bool)
	for _, s := range urls {
		if u, err := url.Parse(s); err == nil {
			all[origin(u)] = true
		}
	}
	return all
}
