package presets

import (
	"net/http"

	"github.com/ration-go/ration/provider"
)

// DynamoDB returns the preset "dynamodb": Amazon DynamoDB. Its requests are signed: sign them in
// Base, or before.
func DynamoDB() *provider.Provider {
	return &provider.Provider{
		Name: "dynamodb", Note: "capacity units a second, by table and index, as you have provisioned or paid for them, and by account and region",
		Source: "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html", AsOf: undatedCopy, Scope: provider.ScopeAccount,
		Attach:  func(*http.Request, string) error { return nil },
		Windows: []provider.WindowHeaders{},
		Rules: []provider.MatchRule{
			{Field: "__type", Contains: "ProvisionedThroughputExceeded", Reason: provider.ReasonQuota, Scope: provider.ScopeResource},
			{Field: "__type", Contains: "RequestLimitExceeded|ThrottlingException", Reason: provider.ReasonQuota, Scope: provider.ScopeAccount},
			{Field: "__type", Contains: "LimitExceededException", Reason: ""}, // too many tables are being changed
			{Field: "__type", Contains: "UnrecognizedClient|ExpiredToken|InvalidSignature|IncompleteSignature", Reason: provider.ReasonDeadToken},
		},
	}
}
