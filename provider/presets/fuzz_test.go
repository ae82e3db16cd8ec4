package presets_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// Whatever is sent, what is read of it is bounded, consistent, and always the same.
//
//	go test -run '^$' -fuzz FuzzRead -fuzztime 10m ./provider/presets
func FuzzRead(f *testing.F) {
	names := presets.Names()
	number := make(map[string]int)
	for i, name := range names {
		number[name] = i
	}
	for _, s := range answers(f) {
		var header strings.Builder
		for _, pair := range s.Headers {
			header.WriteString(pair[0] + ": " + pair[1] + "\n")
		}
		f.Add(number[s.Provider], s.Status, header.String(), []byte(s.Body), s.Now.Unix())
	}
	f.Fuzz(func(t *testing.T, of, status int, lines string, body []byte, now int64) {
		api, err := presets.Named(names[int(uint(of)%uint(len(names)))])
		require.NoError(t, err)
		a := provider.Response{Status: status, Header: http.Header{}, Body: body, Arrived: time.Unix(now%(1<<40), 0)}
		for line := range strings.Lines(lines) {
			name, value, _ := strings.Cut(line, ":")
			a.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
		before := a.Header.Clone()
		kept := bytes.Clone(body)
		read := api.Read(a)
		require.Equal(t, read, api.Read(a), "the same answer says the same")
		require.Equal(t, before, a.Header)
		require.Equal(t, kept, body)
		rationtest.RequireBoundedFeedback(t, read)
	})
}
