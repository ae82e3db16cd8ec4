package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/store"
)

func TestPauseNamesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	until := time.UnixMicro(1)
	for _, want := range []store.Pause{
		{Until: until},
		{Account: "138d7fba03fe67dca26701f26e68b894", Until: until},
		{Account: "at-work", Until: until},
		{Key: "0123456789abcdef", Until: until},
		{Key: "0123456789abcdef", Account: "with-a-dash", Until: until},
	} {
		var status store.Status
		addPause(&status, encodePause(want.Account, want.Key), until, 0, "")
		require.Equal(t, store.Status{Pauses: []store.Pause{want}}, status)
	}
	for _, want := range []store.Quarantine{
		{Token: "138d7fba03fe67dca26701f26e68b894", Reason: "dead_token", Until: until},
		{Token: "a-b", Reason: "c-d", Until: until, Count: 3},
	} {
		var status store.Status
		addPause(&status, encodeQuarantine(want.Token, want.Reason), until, 2*want.Count, "")
		require.Equal(t, store.Status{Quarantined: []store.Quarantine{want}}, status)
	}
	for _, want := range []store.ResumeRequest{
		{}, {Account: "a-b"}, {Token: "c-d"}, {Account: "a-b", Token: "c-d"}, {Account: "a-b", Token: "c-d", Forget: true},
	} {
		var status store.Status
		addPause(&status, encodeResumption(want), until, 0, "")
		told := store.Resumption{Account: want.Account, Token: want.Token, Forgotten: want.Forget, At: until}
		require.Equal(t, store.Status{Resumed: []store.Resumption{told}}, status)
	}
}
