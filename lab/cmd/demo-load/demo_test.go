package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/lab/chart"
	"oauth-server/lab/dashboards"
	"oauth-server/lab/traffic"
)

// deadline is for all panels to have data; the load ends as soon as they do.
const deadline = 2 * time.Minute

// With servers, load and Prometheus, the one that is installed and version 3 with and without native
// histograms, every panel of every dashboard has data, every rule can be evaluated and no alert
// fires. The pictures can be drawn. Then the database goes away, and one alert says so.
func TestDashboardsAndRulesUnderLoad(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip(errNoPrometheus)
	}
	uri, database := mongotest.Database(t)
	_, comparison := mongotest.Database(t)
	proxy := mongotest.NewProxy(t, uri)
	dir := t.TempDir()
	from := time.Now()
	d, err := start(t.Context(), options{
		root: "../../..", dir: dir, scale: 0.6, scrape: time.Second, mongoDB: proxy.URI, database: database, comparison: comparison,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	}()
	scraped := slices.Concat(d.limited.admins, d.gateway.admins)
	native := startEngine(t, scraped, func(global, job map[string]any) {
		global["scrape_native_histograms"] = true
		delete(job, "always_scrape_classic_histograms")
	})
	watchers := map[string]querier{
		"as installed": d.prometheus,
		"3":            startEngine(t, scraped, func(_, _ map[string]any) {}),
		"3 with native histograms": startEngine(t, scraped, func(global, _ map[string]any) {
			global["scrape_native_histograms"] = true
		}),
	}

	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	summaries := make(chan traffic.Summary, 1)
	go func() { summaries <- d.load(ctx) }()
	for name, p := range watchers {
		checkData(ctx, t, name, p)
	}
	checkNativeOnly(ctx, t, native)
	until(ctx, t, "pictures without lines", func() []string { return drawAll(t, d.prometheus, dir, from) })
	cancel()
	checkAnswers(t, <-summaries)
	checkPictures(t, dir)

	gone := time.Now()
	proxy.Break()
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute) // what docs/deployment.md promises, and more
	defer cancel()
	for name, p := range watchers {
		until(ctx, t, name+": no alert of the database on", func() []string {
			return without(now(t, p, `ALERTS{alertname="OAuthDatabaseUnreachable",alertstate="firing"}`), d.limited.admins)
		})
	}
	t.Logf("the alert fired %v after the database went away", time.Since(gone).Round(time.Second))
	proxy.Restore()
}

// until waits until missing returns nothing. At the end of the context that is an error, with what
// is missing.
func until(ctx context.Context, t *testing.T, what string, missing func() []string) {
	t.Helper()
	for {
		left := missing()
		if len(left) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("%s: %q", what, left)
			return
		case <-time.After(time.Second):
		}
	}
}

func now(t *testing.T, p querier, expr string) model.Vector {
	t.Helper()
	found, err := p.now(t.Context(), expr)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// without returns the instances for which there is no series.
func without(found model.Vector, instances []string) (missing []string) {
	for _, i := range instances {
		if !slices.ContainsFunc(found, func(s *model.Sample) bool { return string(s.Metric["instance"]) == i }) {
			missing = append(missing, i)
		}
	}
	return missing
}

// checkData waits until every panel has data and every rule was evaluated, and checks that no alert
// fires.
func checkData(ctx context.Context, t *testing.T, name string, p querier) {
	t.Helper()
	left := panels()
	until(ctx, t, "Prometheus "+name+": panels without data", func() []string {
		left = empty(t, p, left)
		return slices.Sorted(maps.Keys(left))
	})
	for _, alert := range now(t, p, `ALERTS{alertstate="firing"}`) {
		t.Errorf("Prometheus %s: %s fires: %v", name, alert.Metric["alertname"], alert.Metric)
	}
	if e, ok := p.(*engine); ok {
		until(ctx, t, "Prometheus "+name+": rules", e.unevaluated)
	}
	if missing := now(t, p, classicMissing); len(missing) > 0 {
		t.Errorf("Prometheus %s: OAuthClassicHistogramsMissing is pending", name)
	}
}

const classicMissing = `ALERTS{alertname="OAuthClassicHistogramsMissing"}`

// checkNativeOnly checks that the tests above can fail: with native histograms alone, charts are
// empty, and an alert says why.
func checkNativeOnly(ctx context.Context, t *testing.T, e *engine) {
	t.Helper()
	until(ctx, t, "native histograms only", func() []string {
		if len(now(t, e, classicMissing)) > 0 {
			return nil
		}
		return []string{"OAuthClassicHistogramsMissing is not pending"}
	})
	without := empty(t, e, panels())
	if _, found := without["service.json: Slow tokens A"]; !found {
		t.Errorf("with native histograms only, Slow tokens has data; without: %q", slices.Sorted(maps.Keys(without)))
	}
}

func checkAnswers(t *testing.T, summary traffic.Summary) {
	t.Helper()
	if summary["integrator"]["429"] == 0 {
		t.Error("integrator was never denied")
	}
	if summary["mobile-app"]["429"] > 0 {
		t.Error("mobile-app was denied, and is trusted")
	}
	if summary.Total("error") > 0 {
		t.Error("requests were not answered")
	}
	if t.Failed() {
		t.Logf("the answers by client:\n%s", summary)
	}
}

// drawAll draws the pictures and returns those that have no lines yet.
func drawAll(t *testing.T, p *prometheus, dir string, from time.Time) (missing []string) {
	t.Helper()
	for _, pic := range pictures() {
		name := pic.file
		pic.file = filepath.Join(dir, name)
		switch err := p.draw(t.Context(), pic, from, time.Now()); {
		case errors.Is(err, chart.ErrNothing):
			missing = append(missing, name)
		case err != nil:
			t.Fatal(err)
		}
	}
	return missing
}

func checkPictures(t *testing.T, dir string) {
	t.Helper()
	for _, pic := range pictures() {
		text, err := os.ReadFile(filepath.Join(dir, pic.file))
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(text, new(any)); err != nil {
			t.Errorf("%s: %v", pic.file, err)
		}
	}
}

// querier answers PromQL with the current values.
type querier interface {
	now(ctx context.Context, expr string) (model.Vector, error)
}

// panels returns the queries of all panels by name, without those that find nothing in the demonstration.
func panels() map[string]dashboards.Query {
	all := map[string]dashboards.Query{}
	for name, d := range dashboards.All() {
		for _, q := range d.Queries() {
			if !mayBeEmpty[q.Legend] {
				all[fmt.Sprintf("%s: %s %s", name, q.Panel, q.RefID)] = q
			}
		}
	}
	return all
}

// empty returns those of the queries for which Prometheus has no data.
func empty(t *testing.T, p querier, queries map[string]dashboards.Query) map[string]dashboards.Query {
	t.Helper()
	without := map[string]dashboards.Query{}
	for name, q := range queries {
		if !hasNumber(now(t, p, q.Expr(variables))) {
			without[name] = q
		}
	}
	return without
}

// mayBeEmpty are the legends of queries that find nothing in the demonstration: limits for users
// that differ from those for client_credentials.
var mayBeEmpty = map[string]bool{
	"default limit of each user ({{limit}})":          true,
	"limit of each user of {{client_id}} ({{limit}})": true,
}

// hasNumber reports whether there is a value that is not NaN.
func hasNumber(all model.Vector) bool {
	return slices.ContainsFunc(all, func(s *model.Sample) bool { return !math.IsNaN(float64(s.Value)) })
}

// now returns the current values of an expression.
func (p *prometheus) now(ctx context.Context, expr string) (model.Vector, error) {
	found, _, _, err := p.Query(ctx, expr, time.Time{})
	values, ok := found.(model.Vector)
	if err == nil && !ok {
		err = fmt.Errorf("the result is a %s", found.Type())
	}
	if err != nil {
		return nil, fmt.Errorf("query prometheus: %w in %s", err, expr)
	}
	return values, nil
}
