package outages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A fleet that runs an earlier version keeps a log that this one does not count. A worker says
// so once, and books.
func TestTheLogOfAnEarlierVersionIsNoticed(t *testing.T) {
	server := redistest.Shared(t)
	client, token := server.Client(t), ration.NewToken("secret")
	name, other := redistest.Name(t), redistest.Name(t)
	require.NoError(t, client.HSet(t.Context(), "ration:v1:{"+name+"}", "version", 1).Err())
	workers := []*rationtest.Worker{
		rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(100)),
		rationtest.NewWorker(t, name, client, time.Now, ration.PerHour(100)),
	}
	for range 3 {
		for i, p := range workers {
			_, err := p.Wait(t.Context(), token, 1)
			require.NoError(t, err)
			told := p.Noticed(ration.OldLogFound)
			require.Len(t, told, 1, "worker %d", i)
			require.Contains(t, told[0].String(), "stop them")
			// The next Status tells of more.
			_, err = p.Pause(t.Context(), ration.NewToken("another"), time.Hour)
			require.NoError(t, err)
		}
	}
	p := rationtest.NewWorker(t, other, client, time.Now, ration.PerHour(100))
	_, err := p.Wait(t.Context(), token, 1)
	require.NoError(t, err)
	require.Empty(t, p.Noticed(ration.OldLogFound))
}
