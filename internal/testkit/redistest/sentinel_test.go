package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestFailoverPromotesReplica(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	first, second := s.Primary, s.Replica
	c := s.FailoverClient(t)
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	require.NoError(t, s.Primary.Client(t).Wait(t.Context(), 1, 10*time.Second).Err())

	s.Failover(t)
	require.Same(t, second, s.Primary)
	require.Same(t, first, s.Replica)
	require.Equal(t, "v", s.Primary.Client(t).Get(t.Context(), "k").Val())
	err := s.Replica.Client(t).Set(t.Context(), "k", "w", 0).Err()
	require.True(t, redis.IsReadOnlyError(err), "%v", err)

	require.Eventually(t, func() bool {
		return c.Set(t.Context(), "k", "new", 0).Err() == nil &&
			s.Primary.Client(t).Get(t.Context(), "k").Val() == "new"
	}, 10*time.Second, 10*time.Millisecond, "the client follows")

	s.Failover(t)
	require.Same(t, first, s.Primary, "and back")
}

func TestFailoverOfKilledAndStoppedPrimary(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(t *testing.T, s *redistest.Server){
		"killed":  func(_ *testing.T, s *redistest.Server) { s.Kill() },
		"stopped": func(t *testing.T, s *redistest.Server) { s.Stop(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartSentinel(t)
			fault(t, s.Primary)
			s.Failover(t)
			require.NoError(t, s.Primary.Client(t).Set(t.Context(), "k", "v", 0).Err())
		})
	}
}
