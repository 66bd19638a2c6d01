package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
	"oauth-server/lab/traffic"
)

// options configure [start].
type options struct {
	root    string        // directory of the project
	dir     string        // directory for logs and data; it must exist
	mongoDB string        // URI of the MongoDB that the servers share
	scale   float64       // factor for all request rates
	scrape  time.Duration // interval of Prometheus
	// Names of databases there, for the servers that limit and the one that does not. The demo leaves
	// its data in them.
	database, comparison string
}

var errNoPrometheus = errors.New("prometheus is not installed (Debian: apt-get install prometheus)")

// scrapeEvery is the interval of Prometheus in the demonstration. It is short, because a demonstration lasts a minute, and so that all instances are
// scraped at nearly the same time: what they admit together is drawn as of one time.
const scrapeEvery = 250 * time.Millisecond

// The jobs that Prometheus scrapes the groups as.
const (
	limitedJob   = "oauth-server"
	unlimitedJob = "without-limits"
	gatewayJob   = "gateway"
)

// group is servers with the same job, and who asks them.
type group struct {
	clients         []traffic.Client
	targets, admins []string // URLs for clients, addresses of the admin listeners
	credentials     traffic.Credentials
}

// demo is a running demonstration: servers that limit, and one that does not, for comparison. Both
// get the same traffic. A gateway before the one that does not limit gets little traffic of its own.
type demo struct {
	options
	prometheus *prometheus
	limited    group
	unlimited  group
	gateway    group
	binary     string
	config     string // of servers and gateway
	stops      []func() error
}

// start builds the server, prepares the databases, and starts the servers and Prometheus. If it
// fails, it stops what it started.
func start(ctx context.Context, o options) (*demo, error) {
	d := &demo{options: o}
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

func (d *demo) start(ctx context.Context) error {
	if _, err := exec.LookPath("prometheus"); err != nil {
		return errNoPrometheus
	}
	text, err := os.ReadFile(filepath.Join(d.root, "deploy/demo/oauth-server.yaml"))
	if err != nil {
		return err
	}
	d.config = string(text)
	if d.binary, err = servers.BuildServer(ctx, d.dir); err != nil {
		return err
	}
	d.limited.clients = traffic.DemoClients()
	d.unlimited.clients = append(traffic.DemoClients(), behindGateway())
	if err := d.serve(ctx, &d.limited, d.database, 2); err != nil {
		return err
	}
	if err := d.serve(ctx, &d.unlimited, d.comparison, 1, "--rate-limit-instance-mode=dry_run"); err != nil {
		return err
	}
	g, err := servers.Gateway(ctx, process.AnyCore, d.binary, d.dir, d.unlimited.targets[0], "/token", d.config)
	if err != nil {
		return err
	}
	d.gateway = group{clients: []traffic.Client{behindGateway()}, credentials: d.unlimited.credentials}
	d.add(&d.gateway, g)
	return d.startPrometheus(ctx)
}

// serve prepares the database of a group and starts n servers on it.
func (d *demo) serve(ctx context.Context, g *group, database string, n int, flags ...string) error {
	store := &servers.Store{Binary: d.binary, Dir: d.dir, URI: d.mongoDB, Database: database}
	if _, err := store.Command(ctx, "", "migrate", "up"); err != nil {
		return err
	}
	opened, err := app.OpenStore(ctx, config.Store{MongoDB: &config.MongoDB{URI: d.mongoDB, Database: database}})
	if err != nil {
		return err
	}
	g.credentials, err = traffic.Register(ctx, opened, g.clients, time.Now())
	if err := errors.Join(err, opened.Close()); err != nil {
		return err
	}
	for range n {
		if len(g.targets) > 0 {
			flags = append(slices.Clip(flags), "--issuer="+g.targets[0])
		}
		i, err := store.Serve(ctx, process.AnyCore, d.config, append(flags, "--log-level=warn")...)
		if err != nil {
			return err
		}
		d.add(g, i)
	}
	return nil
}

func (d *demo) add(g *group, i *servers.Server) {
	g.targets, g.admins = append(g.targets, i.URL()), append(g.admins, i.Admin)
	d.stops = append(d.stops, i.Stop)
}

// behindGateway is the client that comes through the gateway: now and then a user signs in, and refreshes.
func behindGateway() traffic.Client {
	return traffic.Client{
		ID: "behind-gateway", Grant: clientcfg.RefreshToken, Users: []string{"ada", "grace"},
		Rate: func(time.Duration) float64 { return 2 },
	}
}

const prometheusConfig = `global: { scrape_interval: %[1]s, evaluation_interval: 1s }
rule_files: [%[2]q]
scrape_configs:
  - job_name: %[3]s
    static_configs: [ { targets: [%[4]s] } ]
  - job_name: %[5]s
    static_configs: [ { targets: [%[6]s] } ]
  - job_name: %[7]s
    static_configs: [ { targets: [%[8]s] } ]
`

func (d *demo) startPrometheus(ctx context.Context) error {
	rules, err := filepath.Abs(filepath.Join(d.root, "deploy/prometheus/rules/*.yml"))
	if err != nil {
		return err
	}
	file := filepath.Join(d.dir, "prometheus.yml")
	text := fmt.Sprintf(prometheusConfig, milliseconds(d.scrape), rules,
		limitedJob, quoted(d.limited.admins), unlimitedJob, quoted(d.unlimited.admins), gatewayJob, quoted(d.gateway.admins))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	free, err := process.FreeAddresses(ctx, 1)
	if err != nil {
		return err
	}
	p, err := process.Start(process.AnyCore, d.dir, "prometheus", "prometheus", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(d.dir, "prometheus"), "--web.listen-address="+free[0])
	if err != nil {
		return err
	}
	d.stops = append(d.stops, p.Stop)
	if d.prometheus, err = newPrometheus("http://" + free[0]); err != nil {
		return err
	}
	return p.Await(ctx, process.Answers(d.prometheus.url+"/-/ready"))
}

func quoted(addresses []string) string { return `"` + strings.Join(addresses, `", "`) + `"` }

// load sends the demo traffic until ctx ends, the same to both groups, and a little to the gateway. It returns what
// the servers that limit answered.
func (d *demo) load(ctx context.Context) (summary traffic.Summary) {
	seed := uint64(time.Now().UnixNano())
	send := func(g *group, clients []traffic.Client) traffic.Summary {
		return traffic.Run(ctx, traffic.Options{
			Targets: g.targets, Credentials: g.credentials, Clients: clients, Scale: d.scale, Seed: seed,
		})
	}
	var all sync.WaitGroup
	all.Go(func() { summary = send(&d.limited, traffic.DemoClients()) })
	all.Go(func() { send(&d.unlimited, traffic.DemoClients()) })
	all.Go(func() { send(&d.gateway, d.gateway.clients) })
	all.Wait()
	return summary
}

// stop stops all that was started, in reverse order.
func (d *demo) stop() error {
	var errs []error
	for _, stop := range slices.Backward(d.stops) {
		errs = append(errs, stop())
	}
	d.stops = nil
	return errors.Join(errs...)
}
