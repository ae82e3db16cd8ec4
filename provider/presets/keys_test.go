package presets_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/provider/presets"
)

// What a provider counts apart has one value, whatever player, product or message a request is about.
func TestKeysOfRequests(t *testing.T) {
	for _, row := range []struct{ preset, key, method, path, want string }{
		{"discord", "route", "GET", "/api/v10/channels/123456/messages/987654", "GET /api/v10/channels/123456/messages/*"},
		{"discord", "route", "POST", "/api/v10/channels/123457/messages", "POST /api/v10/channels/123457/messages"},
		{"discord", "route", "POST", "/api/webhooks/223704706495545344/3d89bb7572e0fb30d8128367b3b1b44fecd1726d", "POST /api/webhooks/223704706495545344/*"},
		{"riot", "method", "GET", "/lol/summoner/v4/summoners/by-name/ann", "GET /lol/summoner/v4/summoners/by-name/*"},
		{"riot", "method", "GET", "/riot/account/v1/accounts/by-riot-id/ann/euw", "GET /riot/account/v1/accounts/by-riot-id/*/*"},
		{"riot", "method", "GET", "/lol/match/v5/matches/EUW1_1234567890/timeline", "GET /lol/match/v5/matches/*/timeline"},
		{"sp-api", "operation", "GET", "/orders/v0/orders/902-3159896-1390916/orderItems", "GET /orders/v0/orders/*/orderItems"},
		{"sp-api", "operation", "GET", "/products/pricing/v0/items/B07N4M94KN/offers", "GET /products/pricing/v0/items/*/offers"},
		{"sp-api", "operation", "PUT", "/listings/2021-08-01/items/A2Z/my-sku", "PUT /listings/2021-08-01/items/*/*"},
		{"x", "endpoint", "GET", "/2/users/by/username/ann", "GET /*/users/by/username/*"},
		{"x", "endpoint", "GET", "/2/users/2244994945/tweets", "GET /*/users/*/tweets"},
	} {
		preset, err := presets.Named(row.preset)
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), row.method, "https://api.test"+row.path, nil)
		require.NoError(t, err)
		require.Equal(t, map[string]string{row.key: row.want}, preset.Keys(req), row.path)
	}
}
