// Package tokenpath compares paths of requests with that of a token endpoint as lenient servers read them, so that another
// spelling does not lead past the limits.
//
//	p, err := tokenpath.Parse("/realms/*/protocol/openid-connect/token")
//	p.Match("/Realms/a/protocol//openid-connect/token;x") // true
//
//	p, err = tokenpath.Parse("/**/oauth2/token")
//	p.Match("/oauth2/token")           // true
//	p.Match("/tenants/a/oauth2/token") // true
//	p.Match("/oauth2/token/x")         // false: it may be another endpoint, see [Pattern.NearURL]
package tokenpath
