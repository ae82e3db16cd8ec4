package presets

import "github.com/ration-go/ration/provider"

// registry has a line for each preset, in the order of their names.
var registry = []struct {
	name   string
	preset func() *provider.Provider
}{
	{"anthropic", Anthropic},
	{"arxiv", ArXiv},
	{"azure-openai", AzureOpenAI},
	{"bedrock", Bedrock},
	{"binance", Binance},
	{"cloudflare", Cloudflare},
	{"crossref", Crossref},
	{"discord", Discord},
	{"dockerhub", DockerHub},
	{"dynamodb", DynamoDB},
	{"etherscan", Etherscan},
	{"gemini", Gemini},
	{"generic", Generic},
	{"github", GitHub},
	{"gitlab", GitLab},
	{"google", Google},
	{"groq", Groq},
	{"hubspot", HubSpot},
	{"instagram", Instagram},
	{"jira", Jira},
	{"linear", Linear},
	{"linkedin", LinkedIn},
	{"mediawiki", MediaWiki},
	{"meta", Meta},
	{"ncbi", NCBI},
	{"notion", Notion},
	{"okta", Okta},
	{"openai", OpenAI},
	{"reddit", Reddit},
	{"riot", Riot},
	{"salesforce", Salesforce},
	{"shopify", Shopify},
	{"slack", Slack},
	{"sp-api", SPAPI},
	{"spotify", Spotify},
	{"strava", Strava},
	{"stripe", Stripe},
	{"telegram", Telegram},
	{"tiktok", TikTok},
	{"twitch", Twitch},
	{"x", X},
	{"youtube", YouTube},
	{"zendesk", Zendesk},
}
