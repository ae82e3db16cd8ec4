package spelling_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/spelling"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"github", "github", 0},
		{"gihtub", "github", 2}, {"gitub", "github", 1}, {"githhub", "github", 1}, {"tokns", "tokens", 1}, {"max_wiat", "max_wait", 2},
	} {
		require.Equal(t, c.want, spelling.Distance(c.a, c.b), "%q to %q", c.a, c.b)
		require.Equal(t, c.want, spelling.Distance(c.b, c.a), "%q to %q", c.b, c.a)
	}
	require.Greater(t, spelling.Distance(strings.Repeat("a", 1<<20), "github"), 64, "what is no slip of the hand is not compared")
}
