// Package introspection asks a token introspection endpoint (RFC 7662) for the user of an access token.
//
// It sends each question once, follows no redirect and reads a bounded answer. A token goes nowhere but into the body of
// that request; no error of this package has it.
//
//	reader, err := subject.NewReader("sub")
//	client, err := introspection.New(introspection.Endpoint{URL: u, ClientID: "gateway", ClientSecret: "…"}, transport, reader)
//	user, reason, err := client.User(ctx, accessToken) // "ada", subject.Known, nil
package introspection
