// Package traffic plays a small cast of OAuth clients against running servers:
// some behave, some throw tokens away, one bursts, one is wrong. It makes the
// charts of a demonstration move, and feeds the test of the dashboards.
//
//	summary := traffic.Run(ctx, traffic.Options{
//		Targets: []string{"http://127.0.0.1:9096"}, Credentials: credentials, Cast: traffic.Cast(),
//	})
//
// The cast and the policies in deploy/demo/oauth-server.yaml belong together.
// The package is for tools and tests only; the server does not import it.
package traffic
