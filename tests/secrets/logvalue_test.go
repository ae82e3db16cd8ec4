package secrets_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// logged returns the fields of a value in a line of log/slog.
func logged(t *testing.T, value any) map[string]any {
	var line bytes.Buffer
	slog.New(slog.NewJSONHandler(&line, nil)).Info("text", "value", value)
	require.NotContains(t, line.String(), "s3cret")
	var fields struct{ Value map[string]any }
	require.NoError(t, json.Unmarshal(line.Bytes(), &fields), line.String())
	return fields.Value
}

// What is logged has the fields by their names, and no token.
func TestValuesAreLoggedByTheirFields(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1, Window: time.Minute, Algorithm: ration.FixedWindow}}
		token := ration.NewToken("s3cret")
		grant, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.Zero(t, grant.Waited)
		_, err = b.Try(t.Context(), token, 1)
		exhausted := logged(t, err)
		require.Equal(t, err.Error(), exhausted["error"])
		require.Equal(t, token.AccountID(), exhausted["account"])
		require.InDelta(t, time.Minute, exhausted["retry_after"], float64(2*time.Second))

		second, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.InDelta(t, time.Minute, second.Waited, float64(2*time.Second))
		fields := logged(t, second)
		require.Equal(t, token.ID(), fields["token"])
		require.Equal(t, token.AccountID(), fields["account"])
		require.EqualValues(t, second.Waited, fields["waited"])
		require.EqualValues(t, 1, fields["cost"])

		usage, err := b.Usage(t.Context(), token)
		require.NoError(t, err)
		fields = logged(t, usage)
		require.EqualValues(t, 0, fields["remaining"])
		require.EqualValues(t, 1, fields[b.Limits[0].String()].(map[string]any)["used"])
	})
	require.Empty(t, logged(t, ration.Grant{})["account"])
	resp := rationtest.Reply{Status: 429, Body: "{}", Header: []string{"Retry-After", "7"}}.To(&http.Request{})
	fields := logged(t, new(ration.Provider).ReadResponse(resp, time.Now()))
	require.Equal(t, true, fields["refused"])
	require.EqualValues(t, 7*time.Second, fields["wait"])
	require.NotContains(t, fields, "remaining")
}

// Who waits twice, because the account is paused meanwhile, has waited for all of it.
func TestWaitedIsTheWholeWait(t *testing.T) {
	rationtest.InBubbles(t, func(t *testing.T, b *ration.Budget) {
		b.Limits = []ration.Limit{{Max: 1, Window: time.Minute}}
		token, begun := ration.NewToken("a"), time.Now()
		_, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		time.AfterFunc(30*time.Second, func() { _, _ = b.Pause(t.Context(), token, 10*time.Minute) })
		grant, err := b.Wait(t.Context(), token, 1)
		require.NoError(t, err)
		require.Equal(t, time.Since(begun), grant.Waited)
		require.GreaterOrEqual(t, grant.Waited, 10*time.Minute)
	})
}

// What is in use can be printed, and is readable.
func TestBudgetsAndPoolsArePrintedInALine(t *testing.T) {
	b := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(5000), ration.PerSecond(10)}, Store: new(ration.MemoryStore)}
	pool := ration.NewPool(b, ration.NewToken("a"), ration.NewToken("b"))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, `budget "api", 5000/1h and 10/1s`, fmt.Sprintf(verb, b))
		require.Equal(t, `pool of 2 tokens of budget "api", 5000/1h and 10/1s`, fmt.Sprintf(verb, pool))
	}
	require.Equal(t, "<nil> <nil>", fmt.Sprint((*ration.Budget)(nil), (*ration.Pool)(nil)))
}
