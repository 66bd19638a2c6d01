// Package tokenclient is a well-behaved OAuth client for one person at a
// terminal: it takes the endpoints from the server's metadata (RFC 8414), gets
// a token by any grant that the server knows, keeps it in a private file,
// reuses it until shortly before it expires and then refreshes it.
//
// It never sends a secret over plain HTTP to another machine, never follows a
// redirect with one, never trusts a callback whose state or issuer is wrong,
// and never writes a token anywhere but into the cache file and the [Result].
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
// A failure that the server reported is a [*ServerError]; when it means that
// the client asked too often, [ServerError.RetryAfter] says when to ask again.
package tokenclient
