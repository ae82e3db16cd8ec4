package redistest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

func TestClusterServesAllSlots(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t, nodes)
			require.Len(t, cluster.Nodes, nodes)
			c := cluster.Client(t)

			// Every slot, by keys searched for each.
			_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for _, key := range keyOfEachSlot() {
					p.Set(t.Context(), key, 1, 0)
				}
				return nil
			})
			require.NoError(t, err)
			var total int64
			for _, s := range cluster.Nodes {
				n, err := s.Client(t).DBSize(t.Context()).Result()
				require.NoError(t, err)
				require.InDelta(t, 16384/nodes, n, 1, "keys of %s", s.Addr)
				total += n
			}
			require.Equal(t, int64(16384), total)

			before := cluster.Commands(t)
			for i := range 30 {
				require.NoError(t, c.Eval(t.Context(), "return redis.call('EXISTS', KEYS[1])", []string{fmt.Sprint("key", i)}).Err())
			}
			require.Equal(t, int64(30), cluster.Commands(t)-before)
		})
	}
}

func TestClusterIsWholeAgainAfterFaults(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, "--cluster-node-timeout", "1000")
	c := cluster.Client(t)
	keys := []string{"a", "b", "c", "d", "e", "f", "g"} // in slots of every node

	cluster.Nodes[1].Restart(t)
	cluster.Await(t)
	for _, k := range keys {
		require.NoError(t, c.Set(t.Context(), k, "v", 0).Err())
	}

	cluster.Nodes[2].Stop(t)
	other := cluster.Nodes[0].Client(t)
	require.Eventually(t, func() bool {
		return strings.Contains(other.ClusterInfo(t.Context()).Val(), "cluster_state:fail")
	}, 20*time.Second, 10*time.Millisecond)
	cluster.Nodes[2].Continue(t)
	cluster.Await(t)
	for _, k := range keys {
		require.Equal(t, "v", c.Get(t.Context(), k).Val())
	}
}

// keyOfEachSlot is 16,384 keys, one for each slot.
func keyOfEachSlot() map[uint16]string {
	keys := make(map[uint16]string)
	for i := 0; len(keys) < 16384; i++ {
		key := fmt.Sprint("key", i)
		keys[slot(key)] = key
	}
	return keys
}

// slot is CRC16 (XMODEM) of a key without a hash tag, modulo 16384.
func slot(key string) uint16 {
	var crc uint16
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}
