package limit

import (
	"archive/zip"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Go's own files of zones, which serve where a machine has none, end in a rule
// instead of a list of changes.
func TestAZoneWhoseFileIsARuleIsSpelledOut(t *testing.T) {
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	files, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer files.Close()
	file, err := files.Open("America/Los_Angeles")
	require.NoError(t, err)
	data, err := io.ReadAll(file)
	require.NoError(t, err)
	location, err := time.LoadLocationFromTZData("America/Los_Angeles", data)
	require.NoError(t, err)

	// Over the last day of a leap year.
	z := newZone(location, time.Date(2024, 11, 15, 11, 6, 40, 0, time.UTC), time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC))
	const hour = int64(time.Hour / time.Microsecond)
	micros := func(year int, month time.Month, day, hour int) int64 {
		return time.Date(year, month, day, hour, 0, 0, 0, time.UTC).UnixMicro()
	}
	require.Equal(t, ZoneOffsets{
		-8 * hour, micros(2025, 3, 9, 10), -7 * hour, micros(2025, 11, 2, 9), -8 * hour,
		micros(2026, 3, 8, 10), -7 * hour, micros(2026, 11, 1, 9), -8 * hour,
	}, z)
}
