package stress_test

import (
	"flag"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

var seeds = flag.Int("seeds", 0, "how many seeds to judge; 0: 500, or 40 with -short")

func TestStress(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = 500
		if testing.Short() {
			n = 40
		}
	}
	at := servers{redistest.Start(t), redistest.StartCluster(t, 1)}
	for seed := range n {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			h := draw(uint64(seed))
			t.Log(h)
			name := redistest.Name(t)
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(rationtest.Leave) // until the last reply is read, and go-redis has asked for the Cluster's state
				all, admin := h.begin(t, at, name)
				l := h.run(t, all, admin, name)
				l.judge(t, all[0])
				if admin != nil {
					fields, err := admin.HLen(t.Context(), "ration:v2:{"+name+"}").Result()
					require.NoError(t, err)
					l.judgeKeys(t, keysOf(t, t.Context(), admin, name, ":*"), int(fields))
				}
			})
		})
	}
}
