// Package tokenpath matches request paths against the path of a token endpoint as lenient servers
// do, so another spelling of the path cannot bypass the limits.
//
//	p, err := tokenpath.Parse("/realms/*/protocol/openid-connect/token")
//	p.Match("/Realms/a/protocol//openid-connect/token;x") // true
//
//	p, err = tokenpath.Parse("/**/oauth2/token")
//	p.Match("/oauth2/token")           // true
//	p.Match("/tenants/a/oauth2/token") // true
//	p.Match("/oauth2/token/x")         // false: it may be another endpoint, see [Pattern.NearURL]
package tokenpath
