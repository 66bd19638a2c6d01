// Package app builds the server in three stages and runs it. It also contains the changes that
// operators make directly in a store: creating clients and users.
//
//	cfg, err := config.Load(config.Sources{File: "oauth.yaml", Environ: os.Environ()})
//	// …
//	server, err := app.New(ctx, cfg, app.Options{Logger: logger})
//	// …
//	err = server.Run(ctx) // until ctx ends, then stops gracefully
//
// The package makes no decisions about tokens or limits. It connects the packages that do, and it
// is the only package that selects the backend.
//
// # How to read it
//
// server.go contains the order of start and stop: [New] builds the stages, and [Server.Run] starts
// their parts and stops them in reverse order.
//
//	foundation.go   opens telemetry, addresses, store, certificate, signing keys, clients
//	limiter.go      decides: counters, policies, resets, and the syncer that shares the counts
//	configfile.go   follows the configuration file while the server runs
//	edge.go         answers: the token endpoint, the admin API, and their HTTP servers
//	teardown.go     stops everything in reverse order and in bounded time
//
// Then, in any order: connections.go (how connections end, and TLS; connbound bounds them),
// store.go (backend, migrations, verification), telemetry.go (logs, metrics, traces), readiness.go
// (/readyz), accounts.go (clients and users).
package app
