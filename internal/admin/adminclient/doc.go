// Package adminclient calls the admin API (internal/admin) for the command line: it sends
// the bearer token, ETags and reasons, and reads answers and problem details.
//
// [InProcess] calls a handler instead, for a command that has opened the store itself.
//
// It never sends a token over plain HTTP to another machine, never follows a redirect
// with one, and writes nothing to a terminal.
//
//	c := &adminclient.Client{Server: "http://127.0.0.1:9097", HTTP: http.DefaultClient, Token: token}
//	var policy adminapi.Policy
//	etag, err := c.Get(ctx, "/policies/shop", nil, &policy)
//	…
//	etag, err = c.Change(ctx, adminclient.Change{
//		Method: http.MethodPatch, Path: "/policies/shop", ETag: etag,
//		Body: map[string]any{"trusted": true},
//	}, &policy)
package adminclient
