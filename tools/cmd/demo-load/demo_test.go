package main

import (
	"context"
	"errors"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/tools/chart"
	"oauth-server/tools/traffic"
)

const (
	// deadline is for all panels to have data; the load ends as soon as they do.
	deadline = 2 * time.Minute
	// scale multiplies the rates, so that clients are denied at once.
	scale = 3
)

// With two servers, a Prometheus and load, every panel of every dashboard has data, the
// pictures can be drawn from it, and no alert fires.
func TestDashboardsShowTwoServersUnderLoad(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip(errNoPrometheus)
	}
	uri, database := mongotest.Database(t)
	dir := t.TempDir()
	from := time.Now()
	d, err := start(t.Context(), options{root: "../../..", dir: dir, servers: 2, mongoDB: uri, database: database})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.stop(); err != nil {
			t.Error(err)
		}
	}()

	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	summaries := make(chan traffic.Summary, 1)
	go func() { summaries <- d.load(ctx, scale) }()
	missing := waitForData(ctx, t, d.prometheus, dir, from)
	cancel()
	summary := <-summaries

	if len(missing) > 0 {
		t.Errorf("panels without data, or pictures without lines: %q", missing)
	}
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
	checkNoAlert(t, d.prometheus)
	checkPictures(t, dir)
}

// waitForData waits until all panels have data and all pictures lines, or the context ends, and
// returns those that do not.
func waitForData(ctx context.Context, t *testing.T, p *prometheus, dir string, from time.Time) []string {
	t.Helper()
	for {
		missing, err := p.empty(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(missing) == 0 {
			missing = drawAll(t, p, dir, from)
		}
		if len(missing) == 0 || ctx.Err() != nil {
			return missing
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
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

func checkNoAlert(t *testing.T, p *prometheus) {
	t.Helper()
	firing, err := p.now(t.Context(), `ALERTS{alertstate="firing"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range firing {
		t.Errorf("%s fires: %v", alert.labels["alertname"], alert.labels)
	}
}

func checkPictures(t *testing.T, dir string) {
	t.Helper()
	for _, pic := range pictures() {
		f, err := os.Open(filepath.Join(dir, pic.file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.DecodeConfig(f); err != nil {
			t.Errorf("%s: %v", pic.file, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
