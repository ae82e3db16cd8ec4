package draw

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A failing stands for a test, and keeps what it is told.
type failing struct {
	testing.TB
	failed bool
	told   string
}

func (f *failing) Helper()                        {}
func (f *failing) Failed() bool                   { return f.failed }
func (f *failing) Errorf(format string, a ...any) { f.failed = true }
func (f *failing) Logf(format string, a ...any)   { f.told = fmt.Sprintf(format, a...) }

func TestDrawsLieInTheirRanges(t *testing.T) {
	seen := make(map[int]bool)
	Check(t, func(t *T) {
		for range 50 {
			n := IntRange(-3, 4).Draw(t, "n")
			require.True(t, n >= -3 && n <= 4)
			seen[n] = true
			require.Contains(t, []string{"a", "b"}, SampledFrom([]string{"a", "b"}).Draw(t, "s"))
			require.InDelta(t, 0.5, Float64Range(0, 1).Draw(t, "f"), 0.5)
			require.GreaterOrEqual(t, Int64Range(-1<<63, 1<<63-1).Draw(t, "i"), int64(-1<<63))
			require.Regexp(t, `^[!-~]{2,5}$`, Printable(2, 5).Draw(t, "p"))
		}
	})
	require.Len(t, seen, 8)
}

// A failure tells its seed, by which the case is drawn again.
func TestACaseIsDrawnAgainByItsSeed(t *testing.T) {
	test := func(t *T) {
		if IntRange(0, 1000).Draw(t, "n") > 700 {
			t.Errorf("too much")
		}
	}
	var first failing
	for s := uint64(1); !first.failed; s++ {
		runs(&first, s, test)
	}
	require.Contains(t, first.told, "n: ")
	var s uint64
	_, err := fmt.Sscanf(first.told, "-draw.seed=%d", &s)
	require.NoError(t, err)
	var again failing
	runs(&again, s, test)
	require.Equal(t, first, again)
}

func TestActionsThatAreNotPossibleAreDrawnAnew(t *testing.T) {
	Check(t, func(t *T) {
		count, checked := 0, 0
		t.Repeat(map[string]func(*T){
			"add": func(*T) { count++ },
			"remove": func(t *T) {
				if count == 0 {
					t.Skip("there is none")
				}
				count--
			},
			"": func(t *T) {
				checked++
				require.GreaterOrEqual(t, count, 0)
			},
		})
		require.GreaterOrEqual(t, checked, 2)
	})
}
