// Package preset has the limits that well-known providers publish for token requests, for operators
// who want the same limits. Every figure is on the page named beside it.
//
// A preset is only ever copied: the operator's settings contain its limits and not its name. Changing
// a preset in a later release therefore leaves existing settings unchanged.
package preset

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Preset is a named set of limits that a provider publishes. A list is absent if the provider's
// page has no limit that this server can count.
type Preset struct {
	Name   string            `json:"name"`
	User   []ratelimit.Limit `json:"user,omitempty"` // absent: the page has no such limit that can be counted
	Client []ratelimit.Limit `json:"client,omitempty"`
	Total  []ratelimit.Limit `json:"total,omitempty"` // over all users of a client
	About  string            `json:"about"`           // what the provider limits, for people
	Page   string            `json:"page"`            // URL of the provider's page with the limits
}

// All returns the presets sorted by name. The caller must not change the lists.
func All() []Preset { return presets }

var presets = []Preset{
	{
		Name:   "auth0-free",
		User:   []ratelimit.Limit{perSecond(30), perMinute(300)},
		Client: []ratelimit.Limit{perSecond(30), perMinute(300)},
		Total: []ratelimit.Limit{
			ratelimit.NewLimit("total-per-second", 30, time.Second), ratelimit.NewLimit("total-per-minute", 300, time.Minute),
		},
		About: "Auth0, Free subscription: requests to /oauth/token and to the Authentication API. " +
			"Auth0 counts all clients of a tenant together; here the limit applies to each client, over all its users.",
		Page: "https://auth0.com/docs/troubleshoot/customer-support/operational-policies/rate-limit-policy/rate-limit-configurations/free-public",
	},
	{
		Name: "ebay",
		User: []ratelimit.Limit{
			of(ratelimit.GrantCode, ratelimit.NewLimit("codes", 10_000, 24*time.Hour)),
			of(ratelimit.GrantRefresh, ratelimit.NewLimit("refreshes", 50_000, 24*time.Hour)),
		},
		Client: []ratelimit.Limit{ratelimit.NewLimit("per-day", 1000, 24*time.Hour)},
		About: "eBay: requests of an application per day, by grant. eBay counts all users of an application together; here " +
			"the limits for codes and refreshes apply to each user.",
		Page: "https://developer.ebay.com/api-docs/static/oauth-rate-limits.html",
	},
	{
		Name: "entra",
		User: []ratelimit.Limit{ratelimit.NewLimit("per-5m", 14, 5*time.Minute)},
		About: "Microsoft Entra ID: refuses an app instance, recognized by its cookie, that repeats the same request 15 or more " +
			"times in 5 minutes. Here all requests for a user count together.",
		Page: "https://learn.microsoft.com/en-us/entra/identity-platform/reference-breaking-changes",
	},
	{
		Name: "okta",
		User: []ratelimit.Limit{of(ratelimit.GrantPassword|ratelimit.GrantRefresh, perSecond(4))},
		About: "Okta: tokens generated or refreshed for one username, at endpoints that accept a username and password from " +
			"unauthenticated users. Here every refresh for the user counts.",
		Page: "https://developer.okta.com/docs/reference/rl2-limits/",
	},
	{
		Name:  "zoho",
		User:  []ratelimit.Limit{of(ratelimit.GrantRefresh, ratelimit.NewLimit("per-10m", 10, 10*time.Minute))},
		About: "Zoho: access tokens that an app requests with one refresh token. Here all refresh tokens of a user count together.",
		Page:  "https://www.zoho.com/accounts/protocol/oauth/token-limits.html",
	},
}

// of restricts the limit to these grants.
func of(g ratelimit.Grants, l ratelimit.Limit) ratelimit.Limit {
	l.Grants = g
	return l
}

func perSecond(n int64) ratelimit.Limit { return ratelimit.NewLimit("per-second", n, time.Second) }

func perMinute(n int64) ratelimit.Limit { return ratelimit.NewLimit("per-minute", n, time.Minute) }
