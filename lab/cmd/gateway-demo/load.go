package main

import (
	"context"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
	"oauth-server/lab/traffic"
)

const (
	looping = "integrator"
	// quiet is how long the client in a loop behaves as the others do, and often how many tokens a second it asks for then.
	quiet = 10 * time.Second
	often = 30
	// seldom is how many tokens a second a well-behaved client asks for.
	seldom = 0.5
)

// limits allow each client two tokens a second at the gateway.
const limits = "log: { level: warn }\nrate_limit: { default: { client: [ { name: brief, requests: 20, window: 10s } ] } }\n"

// clients returns one in a loop and five that behave well.
func clients() []traffic.Client {
	loops := func(since time.Duration) float64 {
		if since < quiet {
			return seldom
		}
		return often
	}
	behaves := func(time.Duration) float64 { return seldom }
	all := []traffic.Client{{ID: looping, Grant: clientcfg.ClientCredentials, Rate: loops}}
	for _, id := range []string{"billing", "reports", "search", "shop", "warehouse"} {
		all = append(all, traffic.Client{ID: id, Grant: clientcfg.ClientCredentials, Rate: behaves})
	}
	return all
}

// secrets returns the secret of each client.
func secrets() map[string]string {
	all := map[string]string{}
	for _, c := range clients() {
		all[c.ID] = c.ID + "-secret"
	}
	return all
}

// startGateway builds the server and starts a gateway before the upstream, with its files in dir.
func startGateway(ctx context.Context, dir, upstream string) (*servers.Server, error) {
	binary, err := servers.BuildServer(ctx, dir)
	if err != nil {
		return nil, err
	}
	const path = "/realms/*/protocol/openid-connect/token"
	return servers.Gateway(ctx, process.AnyCore, binary, dir, upstream, path, limits)
}
