package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/dns" // of the profile gateway
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"go.yaml.in/yaml/v3"
)

// engine is the scraper, the storage, the rules and the queries of Prometheus 3 in this process, with
// the configuration of deploy/prometheus.
type engine struct {
	db     *tsdb.DB
	promql *promql.Engine
	rules  *rules.Manager
}

// engineEvery is the time between two scrapes. Three engines and the servers share one machine.
const engineEvery = 2 * time.Second

const shippedConfig = "../../../deploy/prometheus/prometheus.yml"

// startEngine scrapes the admin listeners until the test ends. Change alters the shipped
// configuration, which is a document of YAML.
func startEngine(t *testing.T, admins []string, change func(global, job map[string]any)) *engine {
	t.Helper()
	cfg := shipped(t, admins, change)
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := scrape.NewManager(&scrape.Options{DiscoveryReloadInterval: 1}, nil, nil, nil, db, client.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.ApplyConfig(cfg); err != nil {
		t.Fatal(err)
	}
	e := &engine{db: db, promql: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return engineEvery.Milliseconds() },
		Parser:                   parser.NewParser(parser.Options{}),
	})}
	e.startRules(t)

	found, scraped := make(chan map[string][]*targetgroup.Group, 1), make(chan error, 1)
	targets := map[string][]*targetgroup.Group{}
	for _, sc := range cfg.ScrapeConfigs {
		for _, sd := range sc.ServiceDiscoveryConfigs {
			targets[sc.JobName] = append(targets[sc.JobName], sd.(discovery.StaticConfig)...)
		}
	}
	found <- targets
	go func() { scraped <- manager.Run(found) }()
	t.Cleanup(func() {
		e.rules.Stop()
		manager.Stop()
		if err := <-scraped; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// shipped returns the configuration in deploy/prometheus, with other targets, more frequent
// scrapes, and the change.
func shipped(t *testing.T, admins []string, change func(global, job map[string]any)) *config.Config {
	t.Helper()
	raw, err := os.ReadFile(shippedConfig)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Global    map[string]any   `yaml:"global"`
		RuleFiles []string         `yaml:"rule_files"`
		Jobs      []map[string]any `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	doc.Global["scrape_interval"], doc.Global["evaluation_interval"] = engineEvery.String(), engineEvery.String()
	delete(doc.Jobs[0], "dns_sd_configs")
	doc.Jobs[0]["static_configs"] = []any{map[string]any{"targets": admins}}
	change(doc.Global, doc.Jobs[0])
	if raw, err = yaml.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(string(raw), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("Prometheus 3 refuses the configuration: %v\n%s", err, raw)
	}
	return cfg
}

// Prometheus 3 reads the configuration of docker-compose.yml as it is.
func TestConfigurationIsValid(t *testing.T) {
	raw, err := os.ReadFile(shippedConfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(string(raw), slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

func (e *engine) startRules(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/prometheus/rules/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	e.rules = rules.NewManager(&rules.ManagerOptions{
		Appendable: e.db, Queryable: e.db, QueryFunc: rules.EngineQueryFunc(e.promql, e.db),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Context:    t.Context(), ExternalURL: &url.URL{}, Logger: slog.New(slog.DiscardHandler), Registerer: client.NewRegistry(),
		DefaultRuleQueryOffset: func() time.Duration { return 0 }, Parser: parser.NewParser(parser.Options{}),
	})
	if err := e.rules.Update(engineEvery, files, labels.EmptyLabels(), "", nil); err != nil {
		t.Fatal(err)
	}
	go e.rules.Run()
}

// now returns the current values of an expression. Those that are histograms count as numbers.
func (e *engine) now(ctx context.Context, expr string) (model.Vector, error) {
	q, err := e.promql.NewInstantQuery(ctx, e.db, nil, expr, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, fmt.Errorf("%s: %w", expr, res.Err)
	}
	found, err := res.Vector()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	all := make(model.Vector, 0, len(found))
	for _, s := range found {
		metric := model.Metric{}
		s.Metric.Range(func(l labels.Label) { metric[model.LabelName(l.Name)] = model.LabelValue(l.Value) })
		all = append(all, &model.Sample{Metric: metric, Value: model.SampleValue(s.F)})
	}
	return all, nil
}

// unevaluated returns the rules that were not evaluated without an error, and the recording rules
// without a result.
func (e *engine) unevaluated() (missing []string) {
	for _, r := range e.rules.Rules() {
		if r.Health() != rules.HealthGood {
			missing = append(missing, fmt.Sprintf("%s is %s: %v", r.Name(), r.Health(), r.LastError()))
		}
		if _, ok := r.(*rules.RecordingRule); !ok {
			continue
		}
		if found, err := e.now(context.Background(), r.Name()); err != nil || !hasNumber(found) {
			missing = append(missing, fmt.Sprintf("%s has no result: %v", r.Name(), err))
		}
	}
	return missing
}
