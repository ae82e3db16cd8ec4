package presets

import (
	"net/http"
	"time"

	"github.com/ration-go/ration/internal/header"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// DockerHub returns the preset "dockerhub": Docker Hub's registry. It also reads
// `Docker-RateLimit-Source`.
func DockerHub() *provider.Provider {
	return &provider.Provider{
		Name: "dockerhub", Limits: []limit.Limit{{Max: 100, Window: 6 * time.Hour}}, Note: "pulls; 200 with a personal account, and a HEAD is free",
		Source: "https://docs.docker.com/docker-hub/usage/pulls/", AsOf: undatedCopy,
		Windows: []provider.WindowHeaders{{Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset"}},
		Spent: func(resp *http.Response) map[string]int {
			if resp.Request != nil && resp.Request.Method == http.MethodHead {
				return map[string]int{"": 0}
			}
			return nil
		},
		Adjust: adjustDockerHub,
	}
}

// adjustDockerHub sets whose pulls were counted: an address's or a user's.
func adjustDockerHub(r *provider.Response, f *provider.Feedback) {
	if f.Reason != provider.ReasonQuota || f.Scope != "" {
		return
	}
	if source := r.Header.Get("Docker-RateLimit-Source"); header.IsAddress(source) {
		f.Scope = provider.ScopeIP
	} else if source != "" {
		f.Scope = provider.ScopeUser
	}
}
