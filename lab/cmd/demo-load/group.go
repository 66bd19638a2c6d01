package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/lab/process"
	"oauth-server/lab/traffic"
)

// The jobs that Prometheus scrapes the groups as.
const (
	limitedJob   = "oauth-server"
	unlimitedJob = "without-limits"
	gatewayJob   = "gateway"
)

// group is servers that share a database.
type group struct {
	job, database   string
	clients         []traffic.Client
	targets, admins []string // URLs for clients, addresses of the admin listeners
	credentials     traffic.Credentials
}

// startGroup prepares the database of a group and starts n servers on it.
func (d *demo) startGroup(ctx context.Context, o options, g *group, n int, flags ...string) error {
	database := []string{"--mongodb-uri=" + o.mongoDB, "--mongodb-database=" + g.database}
	if err := process.Execute(ctx, o.root, append([]string{d.binary, "migrate", "up"}, database...)...); err != nil {
		return err
	}
	if err := g.register(ctx, o); err != nil {
		return err
	}
	free, err := process.FreeAddresses(ctx, 2*n)
	if err != nil {
		return err
	}
	for i := range n {
		listen, admin := free[2*i], free[2*i+1]
		args := append([]string{
			d.binary, "serve", "--config=" + filepath.Join(o.root, "deploy/demo/oauth-server.yaml"),
			"--listen=" + listen, "--admin-listen=" + admin, "--issuer=http://" + free[0], "--log-level=warn", "--drain-delay=0s",
		}, append(database, flags...)...)
		g.targets, g.admins = append(g.targets, "http://"+listen), append(g.admins, admin)
		if err := d.serve(ctx, o.dir, fmt.Sprintf("%s-%d", g.job, i+1), "http://"+listen+"/readyz", args); err != nil {
			return err
		}
	}
	return nil
}

// serve starts a command that runs until the demonstration ends, and waits until it is ready.
func (d *demo) serve(ctx context.Context, dir, name, ready string, args []string) error {
	p, err := process.Start(dir, name, nil, args...)
	if err != nil {
		return err
	}
	d.processes = append(d.processes, p)
	return p.Await(ctx, ready)
}

// startGateway starts a gateway before the server that does not limit, with a store of its own.
func (d *demo) startGateway(ctx context.Context, o options) error {
	free, err := process.FreeAddresses(ctx, 2)
	if err != nil {
		return err
	}
	d.gateway = &group{
		job: gatewayJob, clients: []traffic.Client{behindGateway()}, targets: []string{"http://" + free[0]}, admins: free[1:],
	}
	return d.serve(ctx, o.dir, d.gateway.job, "http://"+free[1]+"/readyz", []string{
		d.binary, "gateway", "--config=" + filepath.Join(o.root, "deploy/demo/oauth-server.yaml"),
		"--upstream=" + d.unlimited.targets[0], "--token-path=/token", "--data=" + filepath.Join(o.dir, "gateway.db"),
		"--listen=" + free[0], "--admin-listen=" + free[1], "--log-level=warn", "--drain-delay=0s",
	})
}

// behindGateway is the client that comes through the gateway: now and then a user signs in, and refreshes.
func behindGateway() traffic.Client {
	return traffic.Client{
		ID: "behind-gateway", Grant: clientcfg.RefreshToken, Users: []string{"ada", "grace"},
		Rate: func(time.Duration) float64 { return 2 },
	}
}

func (g *group) register(ctx context.Context, o options) error {
	store, err := app.OpenStore(ctx, config.Store{MongoDB: &config.MongoDB{URI: o.mongoDB, Database: g.database}})
	if err != nil {
		return err
	}
	g.credentials, err = traffic.Register(ctx, store, g.clients, time.Now())
	return errors.Join(err, store.Close())
}
