package endpoint

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsObjectID(t *testing.T) {
	for part, want := range map[string]bool{
		"17": true, "17841400000000001": true, "6f9619ff-8b86-d011-b42d-00c04fc964ff": true, "sub_1MowQVLkdIwHu7ix": true,
		"a1b2c3d4e5f6": true, "a1b2c3d4e5f": false, "": false, "v1": false, "users": false, "oauth2": false,
		"notification-settings": false, "file.json": false, "12:34": false, "1.5": false, "ß17": false, "12345678901 ": false,
	} {
		require.Equal(t, want, isObjectID(part), "%q", part)
	}
}

func TestNames(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), "", "http://api.test/channels/17/messages/1234567890123", nil)
	require.NoError(t, err)
	require.Equal(t, "GET /channels/*/messages/*", Of(req))
	require.Equal(t, "GET /channels/17/messages/*", OfFirstObject(req))
}
