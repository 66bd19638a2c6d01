package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"oauth-server/lab/process"
	"oauth-server/lab/traffic"
)

// options configure [start].
type options struct {
	root    string  // directory of the project
	dir     string  // directory for logs and data; it must exist
	servers int     // number of those that limit
	mongoDB string  // URI of the MongoDB that the servers share
	scale   float64 // factor for all request rates
	// Names of databases there, for the servers that limit and the one that does not. The demo leaves
	// its data in them.
	database, comparison string
}

var errNoPrometheus = errors.New("prometheus is not installed (Debian: apt-get install prometheus)")

// scrapeEvery is short, because a demonstration lasts a minute, and so that all instances are
// scraped at nearly the same time: what they admit together is drawn as of one time.
const scrapeEvery = 250 * time.Millisecond

// demo is a running demonstration: servers that limit, and one that does not, for comparison. Both
// get the same traffic. A gateway before the one that does not limit gets little traffic of its own.
type demo struct {
	prometheus *prometheus
	limited    *group
	unlimited  *group
	gateway    *group
	binary     string
	processes  []*process.Process
	scale      float64
}

// start builds the server, prepares the databases, and starts the servers and Prometheus. If it
// fails, it stops what it started.
func start(ctx context.Context, o options) (_ *demo, err error) {
	d := &demo{binary: filepath.Join(o.dir, "oauth-server"), scale: o.scale}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	if _, err := exec.LookPath("prometheus"); err != nil {
		return nil, errNoPrometheus
	}
	if err := process.Execute(ctx, o.root, "go", "build", "-o", d.binary, "./cmd/oauth-server"); err != nil {
		return nil, err
	}
	d.limited = &group{job: limitedJob, database: o.database, clients: traffic.DemoClients()}
	d.unlimited = &group{job: unlimitedJob, database: o.comparison, clients: append(traffic.DemoClients(), behindGateway())}
	if err := d.startGroup(ctx, o, d.limited, o.servers); err != nil {
		return nil, err
	}
	if err := d.startGroup(ctx, o, d.unlimited, 1, "--rate-limit-instance-mode=dry_run"); err != nil {
		return nil, err
	}
	if err := d.startGateway(ctx, o); err != nil {
		return nil, err
	}
	return d, d.startPrometheus(ctx, o)
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

func (d *demo) startPrometheus(ctx context.Context, o options) error {
	rules, err := filepath.Abs(filepath.Join(o.root, "deploy/prometheus/rules/*.yml"))
	if err != nil {
		return err
	}
	file := filepath.Join(o.dir, "prometheus.yml")
	text := fmt.Sprintf(prometheusConfig, scrapeEvery, rules,
		d.limited.job, quoted(d.limited.admins), d.unlimited.job, quoted(d.unlimited.admins), d.gateway.job, quoted(d.gateway.admins))
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

func quoted(addresses []string) string { return `"` + strings.Join(addresses, `", "`) + `"` }

// load sends the demo traffic until ctx ends, the same to both groups, and a little to the gateway. It returns what
// the servers that limit answered.
func (d *demo) load(ctx context.Context, progress func(time.Duration, traffic.Summary)) traffic.Summary {
	o := traffic.Options{Clients: traffic.DemoClients(), Scale: d.scale, Seed: uint64(time.Now().UnixNano())}
	var others sync.WaitGroup
	defer others.Wait()
	same := o
	same.Targets, same.Credentials = d.unlimited.targets, d.unlimited.credentials
	others.Go(func() { traffic.Run(ctx, same) })
	through := o
	through.Clients, through.Targets, through.Credentials = d.gateway.clients, d.gateway.targets, d.unlimited.credentials
	others.Go(func() { traffic.Run(ctx, through) })
	o.Targets, o.Credentials, o.Progress = d.limited.targets, d.limited.credentials, progress
	return traffic.Run(ctx, o)
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
