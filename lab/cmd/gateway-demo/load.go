package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/lab/process"
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

// limits are those of each client at the gateway: two tokens a second.
const limits = "rate_limit: { default: { client: [ { name: brief, requests: 20, window: 10s } ] } }\n"

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

// gateway is a running one.
type gateway struct {
	*process.Process
	url string
}

// startGateway builds the server from the root of the project and starts a gateway before the upstream, with its files in
// dir.
func startGateway(ctx context.Context, root, dir, upstream string) (*gateway, error) {
	binary, config := filepath.Join(dir, "oauth-server"), filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(config, []byte(limits), 0o600); err != nil {
		return nil, err
	}
	if err := process.Execute(ctx, root, "go", "build", "-o", binary, "./cmd/oauth-server"); err != nil {
		return nil, err
	}
	free, err := process.FreeAddresses(ctx, 2)
	if err != nil {
		return nil, err
	}
	p, err := process.Start(dir, "gateway", nil, binary, "gateway", "--config="+config, "--data="+filepath.Join(dir, "gateway.db"),
		"--listen="+free[0], "--admin-listen="+free[1], "--log-level=warn", "--drain-delay=0s",
		"--upstream="+upstream, "--token-path=/realms/*/protocol/openid-connect/token")
	if err != nil {
		return nil, err
	}
	if err := p.Await(ctx, "http://"+free[1]+"/readyz"); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return &gateway{p, "http://" + free[0]}, nil
}
