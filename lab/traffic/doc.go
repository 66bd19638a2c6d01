// Package traffic sends the token requests of a few demo clients to running
// servers: some stay below their limit, some exceed it, one sends bursts, one a
// wrong secret. It is the load of the demonstrations and of the test of the
// dashboards.
//
//	summary := traffic.Run(ctx, traffic.Options{
//		Targets: []string{"http://127.0.0.1:9096"}, Credentials: credentials, Clients: traffic.DemoClients(),
//	})
//
// The policies of [DemoClients] are in deploy/demo/oauth-server.yaml.
package traffic
