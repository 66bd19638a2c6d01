// Package introspection asks a token introspection endpoint (RFC 7662) for the user of an access
// token.
//
// It sends each request once, follows no redirects and limits the size of the answer. It sends a
// token only in the body of that request, and its errors never contain a token.
//
//	reader, err := subject.NewReader("sub")
//	client, err := introspection.New(introspection.Endpoint{URL: u, ClientID: "gateway", ClientSecret: "…"}, transport, reader)
//	user, reason, err := client.User(ctx, accessToken) // "ada", subject.Known, nil
package introspection
