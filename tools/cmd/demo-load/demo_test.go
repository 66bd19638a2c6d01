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
	// enough is more than it takes until every panel has data, which is when
	// the load ends.
	enough = 2 * time.Minute
	// faster makes limits bite at once.
	faster = 3
)

// Two servers, a Prometheus and load: every panel of every dashboard must have
// data, the pictures are drawn from it, and no alert that must never fire does.
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

	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	played := make(chan traffic.Summary, 1)
	go func() { played <- d.play(ctx, faster) }()
	missing := waitForData(ctx, t, d.prometheus, dir, from)
	cancel()
	summary := <-played

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

// waitForData returns the panels that have no data and the pictures that
// cannot be drawn, when there are none or the context ends.
func waitForData(ctx context.Context, t *testing.T, p *prometheus, dir string, from time.Time) []string {
	t.Helper()
	for {
		missing, err := p.empty(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, pic := range pictures() {
			name := pic.file
			pic.file = filepath.Join(dir, name)
			err := p.draw(t.Context(), pic, from, time.Now())
			if errors.Is(err, chart.ErrNothing) {
				missing = append(missing, name)
			} else if err != nil {
				t.Fatal(err)
			}
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
