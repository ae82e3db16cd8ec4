// Package hosts compares the hosts that a program names with those of URLs.
package hosts

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Check returns an error for a list that leaves out what it means: a list without a host, or a host
// that no URL ever has. Nil means another list.
func Check(list []string) error {
	if list != nil && len(list) == 0 {
		return errors.New("ration: Transport.Hosts is empty and not nil, so no request would get a token: " +
			"name the hosts that get one, or leave it nil")
	}
	for _, host := range list {
		if host != "" && !strings.ContainsAny(host, "/?#@* ") {
			continue
		}
		name := "api.example.com"
		if u, err := url.Parse(host); err == nil && u.Host != "" {
			name = u.Host
		}
		return fmt.Errorf("ration: Transport.Hosts has %q: write a host as it stands in a URL, with or without a port, such as %q", host, name)
	}
	return nil
}

// IsLocal reports whether an address, with or without a port, is of this machine alone: localhost or a
// loopback address.
func IsLocal(address string) bool {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		name = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// Has reports whether a URL's host is one of the list: with any port, or with the port that the list
// names. A URL without a port has that of its scheme.
func Has(list []string, u *url.URL) bool {
	name := u.Hostname()
	return slices.ContainsFunc(list, func(host string) bool {
		if strings.EqualFold(host, u.Host) || strings.EqualFold(host, name) {
			return true
		}
		port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
		return u.Port() == "" && port != "" && strings.EqualFold(strings.TrimSuffix(host, port), u.Host)
	})
}
