package differential_test

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// TestMain prints the seed of the random histories, and ends the Redis server that the tests
// share.
func TestMain(m *testing.M) {
	flag.Parse()
	seed := flag.Lookup("rapid.seed")
	if seed.Value.String() == seed.DefValue {
		if err := seed.Value.Set(strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
			panic(err)
		}
	}
	fmt.Println("-rapid.seed="+seed.Value.String(), "-rapid.checks="+flag.Lookup("rapid.checks").Value.String())
	redistest.Main(m)
}
