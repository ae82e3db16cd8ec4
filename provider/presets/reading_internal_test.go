package presets

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider"
)

func TestMidnightFollowsTheClocks(t *testing.T) {
	require.Equal(t, 20*time.Hour, provider.Midnight(pacific, noon).Value)
	require.Equal(t, 12*time.Hour, provider.Midnight("UTC", noon).Value)
	require.False(t, provider.Midnight("No/Where", noon).Known)
	spring := time.Date(2026, 3, 8, 8, 0, 0, 0, time.UTC) // midnight; the day has 23 hours
	require.Equal(t, 23*time.Hour, provider.Midnight(pacific, spring).Value)
}

// Presets are found in one place, in order, and are what they must be.
func TestPresetsAreInOrder(t *testing.T) {
	for i, p := range presets {
		require.True(t, i == 0 || presets[i-1].Name < p.Name, p.Name)
		require.NotEmpty(t, p.Source, p.Name)
		require.Regexp(t, `^(20\d\d-(0[1-9]|1[0-2])|undated|digest)$`, p.AsOf, p.Name)
		require.True(t, len(p.Limits) > 0 || p.Note != "", p.Name)
		for _, limit := range p.Limits {
			require.NoError(t, limit.Validate(), p.Name)
		}
		for _, sign := range p.Rules {
			require.True(t, sign.Status != nil || sign.Header != "" || sign.Field != "" || sign.Contains != "", p.Name)
			require.True(t, sign.MaxWait == 0 || sign.MinWait <= sign.MaxWait, p.Name)
		}
	}
}

func TestYouTubeCostIsTheTableOfItsDocumentation(t *testing.T) {
	for request, cost := range map[string]int{
		"GET /youtube/v3/search": 1, "GET /youtube/v3/videos": 1, "POST /upload/youtube/v3/videos": 1,
		"PUT /youtube/v3/videos": 50, "DELETE /youtube/v3/videos": 50, "POST /youtube/v3/videos/rate": 50,
		"POST /youtube/v3/playlists": 50, "GET /youtube/v3/captions": 50, "DELETE /youtube/v3/captions": 50,
		"POST /upload/youtube/v3/captions": 400, "PUT /upload/youtube/v3/captions": 450,
	} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequest(method, "https://www.googleapis.com"+path, nil)
		require.NoError(t, err)
		require.Equal(t, cost, youtubeCost(req), request)
	}
}

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
