// Package openloop sends requests at times that do not depend on the answers, over as many connections
// as that takes. It hangs up when an answer takes too long, like the callers of an overloaded server.
//
// Package load measures a server with requests that it can answer. It has a fixed number of
// connections, and requests that become due while all are busy wait. This package sends a request as
// soon as it is due, on an idle connection or a new one. The server therefore gets the whole offered
// load at once.
//
//	result, err := openloop.Run(ctx, openloop.Options{
//		Address: server.Address, Core: machine.GeneratorCore, Patience: time.Second, Connections: 4096, Seed: 1,
//		Phases: []openloop.Phase{{For: 5 * time.Second, Rate: 1600}, {For: 5 * time.Second, Rate: 60}},
//	}, source)
//
// One thread, on a processor of its own, polls all connections and never sleeps. When another program
// uses that processor, requests are sent late and answers are read late. The [Result] shows both, to
// tell delays of the generator from delays of the server.
package openloop
