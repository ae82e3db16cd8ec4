package ends_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/ends"
)

func TestBothEndsAreKept(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 4))
	for range 300 {
		var e ends.Ends
		var all []byte
		for range random.IntN(8) {
			p := make([]byte, random.IntN(3*ends.Most/2))
			for i := range p {
				p[i] = byte(random.Uint32())
			}
			all = append(all, p...)
			e.Add(p)
		}
		want := all
		if len(all) > 2*ends.Most {
			want = bytes.Join([][]byte{all[:ends.Most], all[len(all)-ends.Most:]}, nil)
		}
		require.True(t, bytes.Equal(want, e.Bytes()), "of %d bytes", len(all))
	}
}
