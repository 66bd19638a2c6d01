package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/config"
	"oauth-server/tools/process"
	"oauth-server/tools/traffic"
)

// The jobs that Prometheus scrapes the groups as.
const (
	limitedJob   = "oauth-server"
	unlimitedJob = "without-limits"
)

// group is servers that share a database.
type group struct {
	job, database   string
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
		p, err := process.Start(o.dir, fmt.Sprintf("%s-%d", g.job, i+1), nil, args...)
		if err != nil {
			return err
		}
		d.processes = append(d.processes, p)
		g.targets, g.admins = append(g.targets, "http://"+listen), append(g.admins, admin)
		if err := p.Await(ctx, "http://"+listen+"/readyz"); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) register(ctx context.Context, o options) error {
	store, err := app.OpenStore(ctx, config.Store{MongoDB: &config.MongoDB{URI: o.mongoDB, Database: g.database}})
	if err != nil {
		return err
	}
	g.credentials, err = traffic.Register(ctx, store, traffic.DemoClients(), time.Now())
	return errors.Join(err, store.Close())
}
