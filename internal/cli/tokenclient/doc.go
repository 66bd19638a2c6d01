// Package tokenclient is the OAuth client of the token and limits commands: it takes the endpoints
// from the server's metadata (RFC 8414), gets a token by any grant of this server, caches it in a
// private file, reuses it until shortly before it expires, and then refreshes it.
//
// It never sends a secret over plain HTTP to another machine, never follows a redirect with one,
// never accepts a callback with a wrong state or issuer, and never writes a token anywhere but to
// the cache file and the [Result].
//
//	client := &tokenclient.Client{HTTP: tokenclient.NewHTTPClient(), Now: time.Now}
//	result, err := client.Token(ctx, tokenclient.Request{
//		Issuer:       "http://127.0.0.1:9096",
//		Grant:        clientcfg.ClientCredentials,
//		ClientID:     "shop",
//		ClientSecret: secret,
//		CacheFile:    "shop-token.json",
//	})
//	// result.Origin is "issued" the first time and "reused" the second.
//
// A refusal by the server is a [*ServerError]. With status 429, [ServerError.RetryAfter] is how long
// to wait.
package tokenclient
