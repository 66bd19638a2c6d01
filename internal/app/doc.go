// Package app puts the server together, in three stages, and runs it. It also holds what operators
// do to a store directly: making clients and users.
//
//	cfg, err := config.Load(config.Sources{File: "oauth.yaml", Environ: os.Environ()})
//	// …
//	server, err := app.New(ctx, cfg, app.Options{Logger: logger})
//	// …
//	err = server.Run(ctx) // until ctx ends, then stops gracefully
//
// It decides nothing about tokens or limits; it connects the packages that do, and is the only one
// that chooses the backend.
//
// # How to read it
//
// server.go has the order of start and stop: [New] builds the stages, [Server.Run] starts what they
// hold, and stops it in reverse.
//
//	foundation.go   what is opened: telemetry, addresses, store, certificate, signing keys, clients
//	limiter.go      what decides: counters, policies, resets, and the syncer that shares the counts
//	configfile.go   follows the configuration file while the server runs
//	edge.go         what answers: the token endpoint, the admin API, and their HTTP servers
//	teardown.go     stops in reverse and in bounded time what the others have started
//
// Then, in any order: connections.go (how connections end, and TLS), bound.go (how many there are),
// store.go (backend, migrations, verification), telemetry.go (logs, metrics, traces), readiness.go
// (/readyz), accounts.go and demo.go (clients and users).
package app
