package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/config"
	"oauth-server/tools/process"
	"oauth-server/tools/traffic"
)

// options configure [start].
type options struct {
	root     string // directory of the project
	dir      string // directory for logs and data; it must exist
	servers  int    // their number
	mongoDB  string // URI of the MongoDB that the servers share
	database string // its name; the demo leaves its data there
}

var errNoPrometheus = errors.New("prometheus is not installed (Debian: apt-get install prometheus)")

// scrapeEvery is short, because a demonstration lasts a minute.
const scrapeEvery = time.Second

// demo is a running demonstration.
type demo struct {
	prometheus  *prometheus
	targets     []string
	credentials traffic.Credentials
	processes   []*process.Process
}

// start builds the server, prepares the database, and starts the servers and Prometheus. If
// it fails, it stops what it started.
func start(ctx context.Context, o options) (_ *demo, err error) {
	d := &demo{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	if _, err := exec.LookPath("prometheus"); err != nil {
		return nil, errNoPrometheus
	}
	binary := filepath.Join(o.dir, "oauth-server")
	if err := process.Execute(ctx, o.root, "go", "build", "-o", binary, "./cmd/oauth-server"); err != nil {
		return nil, err
	}
	if err := process.Execute(ctx, o.root, binary, "migrate", "up", "--mongodb-uri="+o.mongoDB, "--mongodb-database="+o.database); err != nil {
		return nil, err
	}
	if err := d.register(ctx, o); err != nil {
		return nil, err
	}
	admins, err := d.startServers(ctx, o, binary)
	if err != nil {
		return nil, err
	}
	return d, d.startPrometheus(ctx, o, admins)
}

func (d *demo) register(ctx context.Context, o options) error {
	store, err := app.OpenStore(ctx, config.Store{MongoDB: &config.MongoDB{URI: o.mongoDB, Database: o.database}})
	if err != nil {
		return err
	}
	d.credentials, err = traffic.Register(ctx, store, traffic.DemoClients(), time.Now())
	return errors.Join(err, store.Close())
}

// startServers starts the servers, waits until they are ready and returns the addresses of
// their admin listeners.
func (d *demo) startServers(ctx context.Context, o options, binary string) (admins []string, err error) {
	free, err := process.FreeAddresses(ctx, 2*o.servers)
	if err != nil {
		return nil, err
	}
	for i := range o.servers {
		listen, admin := free[2*i], free[2*i+1]
		p, err := process.Start(o.dir, fmt.Sprintf("server-%d", i+1), nil, binary, "serve",
			"--config="+filepath.Join(o.root, "deploy/demo/oauth-server.yaml"),
			"--listen="+listen, "--admin-listen="+admin, "--issuer=http://"+free[0],
			"--mongodb-uri="+o.mongoDB, "--mongodb-database="+o.database, "--log-level=warn", "--drain-delay=0s")
		if err != nil {
			return nil, err
		}
		d.processes = append(d.processes, p)
		d.targets, admins = append(d.targets, "http://"+listen), append(admins, admin)
		if err := p.Await(ctx, "http://"+listen+"/readyz"); err != nil {
			return nil, err
		}
	}
	return admins, nil
}

const prometheusConfig = `global: { scrape_interval: %[1]s, evaluation_interval: %[1]s }
rule_files: [%[2]q]
scrape_configs:
  - job_name: oauth-server
    static_configs: [ { targets: [%[3]s] } ]
`

func (d *demo) startPrometheus(ctx context.Context, o options, admins []string) error {
	rules, err := filepath.Abs(filepath.Join(o.root, "deploy/prometheus/rules/*.yml"))
	if err != nil {
		return err
	}
	file := filepath.Join(o.dir, "prometheus.yml")
	text := fmt.Sprintf(prometheusConfig, scrapeEvery, rules, `"`+strings.Join(admins, `", "`)+`"`)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	free, err := process.FreeAddresses(ctx, 1)
	if err != nil {
		return err
	}
	p, err := process.Start(o.dir, "prometheus", nil, "prometheus", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(o.dir, "prometheus"), "--web.listen-address="+free[0])
	if err != nil {
		return err
	}
	d.processes = append(d.processes, p)
	d.prometheus = &prometheus{url: "http://" + free[0]}
	return p.Await(ctx, d.prometheus.url+"/-/ready")
}

// load sends the demo traffic until ctx ends. Scale multiplies its rates.
func (d *demo) load(ctx context.Context, scale float64) traffic.Summary {
	return traffic.Run(ctx, traffic.Options{
		Targets: d.targets, Credentials: d.credentials, Clients: traffic.DemoClients(), Scale: scale,
	})
}

// stop stops all that was started, in reverse order.
func (d *demo) stop() error {
	var errs []error
	for i := len(d.processes) - 1; i >= 0; i-- {
		errs = append(errs, d.processes[i].Stop())
	}
	d.processes = nil
	return errors.Join(errs...)
}
