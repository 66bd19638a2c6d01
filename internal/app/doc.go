// Package app puts the server together: it opens the store, makes every part
// from the configuration, starts them in order and stops them in reverse, within
// a bounded time. It also holds what operators do to a store directly: making
// clients and users.
//
// It decides nothing about tokens or limits; it only connects the packages
// that do, and is the only one that knows which backend is used.
//
//	cfg, err := config.Load(config.Sources{File: "oauth.yaml", Environ: os.Environ()})
//	// …
//	server, err := app.New(ctx, cfg, app.Options{Logger: logger})
//	// …
//	err = server.Run(ctx) // until ctx ends, then stops gracefully
package app
