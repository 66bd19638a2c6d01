// Package openloop sends requests at times that do not depend on the answers, over as many connections as that takes, and
// hangs up when an answer takes too long, as callers of an overloaded server do.
//
// Package load measures what a server does with requests that it can answer: it has a fixed number of connections, and
// what is due meanwhile waits. Here a request that is due is sent, on a connection that is idle or on a new one, so the server
// has all that is offered at once.
//
//	result, err := openloop.Run(ctx, openloop.Options{
//		Address: server.Address, Core: machine.GeneratorCore, Patience: time.Second, Connections: 4096, Seed: 1,
//		Phases: []openloop.Phase{{For: 5 * time.Second, Rate: 1600}, {For: 5 * time.Second, Rate: 60}},
//	}, source)
//
// One thread, on a processor of its own, polls all connections and never sleeps. When something else has that processor,
// requests are sent late and answers are read late. The [Result] shows both, so a delay of the generator does not look like
// one of the server.
package openloop
