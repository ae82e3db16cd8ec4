package censor

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/draw"
)

func TestEverySpellingIsReplaced(t *testing.T) {
	r := New("[gone]", "a/b=c+d&e", `q"\'<x>%2f`, "grüße", "with a space")
	for _, spelled := range []string{
		"a/b=c+d&e",
		"a%2Fb%3Dc%2Bd%26e",
		"a%2fb%3dc%2bd%26e",
		"%61%2fb=c+d&e",
		"a%252fb%253Dc%252Bd%2526e",
		`a\/b=c+d&e`,
		`a\\\/b=c+d&e`,
		`a/b\u003dc+d\u0026e`,
		`a\u002Fb\u003Dc\u002bd\u0026e`,
		`a/b\\u003dc+d&e`,
		`a\x2fb=c+d&e`,
		"a&#47;b&#61;c&#43;d&amp;e",
		"a&#x2F;b&#x3d;c&#x2b;d&#38;e",
		"a&sol;b&equals;c&plus;d&amp;e",
		"a&amp;#47;b=c+d&amp;amp;e",
		`a\u0026#47;b=c+d\u0026amp;e`,
		"a%26#47;b=c+d&e",
		`q"\'<x>%2f`,
		`q\"\\'\u003cx\u003e%2f`,
		"q%22%5c%27%3cx%3e%252f",
		"q&quot;\\&#39;&lt;x&gt;%2f",
		"gr%C3%BC%c3%9fe",
		"with+a+space",
		"with%20a%2520space",
		`gr\u00fc\u00dfe`,
	} {
		require.Equal(t, "<[gone]>[gone].", r.Text("<"+spelled+">"+spelled+"."), spelled)
	}
	for _, other := range []string{"", "a/b=c+d&f", "a%2", `\`, `a\u00`, "a&", "a&#", "%25", "a%2fb", "&amp;amp;amp;amp;amp;amp;"} {
		require.Equal(t, other, r.Text(other))
	}
}

func TestShortSecretStays(t *testing.T) {
	require.Equal(t, "abc abcd", New("[gone]", "abc").Text("abc abcd"))
	require.Equal(t, "abc [gone]", New("[gone]", "abc", "abcd").Text("abc abcd"))
}

func TestLongestSecretIsReplaced(t *testing.T) {
	require.Equal(t, "[gone] [gone]-tai [gone]", New("[gone]", "the-first", "the-first-tail").Text("the-first the-first-tai the-first-tail"))
}

// However characters are escaped, and mixed with those that are not, no secret stays, and
// what is around it does.
func TestAnyMixtureOfSpellingsIsReplaced(t *testing.T) {
	draw.Check(t, func(t *draw.T) {
		secret := draw.Printable(4, 20).Draw(t, "secret")
		var b strings.Builder
		for _, c := range secret {
			switch draw.IntRange(0, 6).Draw(t, "as") {
			case 0:
				fmt.Fprintf(&b, "%%%02x", c)
			case 1:
				fmt.Fprintf(&b, "%%25%02X", c)
			case 2:
				fmt.Fprintf(&b, `\u%04x`, c)
			case 3:
				fmt.Fprintf(&b, "&#%d;", c)
			case 4:
				fmt.Fprintf(&b, "&#x%X;", c)
			case 5:
				b.WriteString(url.QueryEscape(string(c)))
			default:
				b.WriteRune(c)
			}
		}
		require.Equal(t, "\n[gone]\n", New("[gone]", secret).Text("\n"+b.String()+"\n"), b.String())
	})
}

// What a provider answers must not decide how long it takes to read.
func BenchmarkText(b *testing.B) {
	var secrets []string
	for i := range 500 {
		secrets = append(secrets, fmt.Sprintf("ghp_%036d", i))
	}
	r := New("[gone]", secrets...)
	for name, text := range map[string]string{
		"JSON":       strings.Repeat(`{"url":"https:\/\/example.com\/a?b=c&d=%2f","page":"ghp_"},`, 1000),
		"percents":   "%" + strings.Repeat("25", 30_000),
		"slashes":    strings.Repeat(`\`, 60_000),
		"references": "&" + strings.Repeat("amp;", 15_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Text(text)
			}
		})
	}
}
