package demoload_test

import (
	"context"
	"errors"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/chart"
	"oauth-server/internal/demoload"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/traffic"
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
		t.Skip(demoload.ErrNoPrometheus)
	}
	uri, database := mongotest.Database(t)
	dir := t.TempDir()
	from := time.Now()
	demo, err := demoload.Start(t.Context(), demoload.Options{Root: "../..", Dir: dir, Servers: 2, MongoDB: uri, Database: database})
	require.NoError(t, err)
	defer func() { require.NoError(t, demo.Stop()) }()

	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	played := make(chan traffic.Summary, 1)
	go func() { played <- demo.Play(ctx, faster) }()
	missing := waitForData(ctx, t, demo.Prometheus, dir, from)
	cancel()
	summary := <-played

	require.Empty(t, missing, "panels without data, or pictures without lines\n%s", summary)
	require.Positive(t, summary["integrator"]["429"], summary.String())
	require.Zero(t, summary["mobile-app"]["429"], "a trusted client was denied")
	require.Zero(t, summary.Total("error"), summary.String())
	requireNoAlert(t, demo.Prometheus)
	requirePictures(t, dir)
}

// waitForData returns the panels that have no data and the pictures that
// cannot be drawn, when there are none or the context ends.
func waitForData(ctx context.Context, t *testing.T, p *demoload.Prometheus, dir string, from time.Time) []string {
	t.Helper()
	for {
		missing, err := p.Empty(t.Context())
		require.NoError(t, err)
		for _, picture := range demoload.Pictures() {
			name := picture.File
			picture.File = filepath.Join(dir, name)
			err := p.Draw(t.Context(), picture, from, time.Now())
			if errors.Is(err, chart.ErrNothing) {
				missing = append(missing, name)
			} else {
				require.NoError(t, err)
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

func requireNoAlert(t *testing.T, p *demoload.Prometheus) {
	t.Helper()
	firing, err := p.Now(t.Context(), `ALERTS{alertstate="firing"}`)
	require.NoError(t, err)
	for _, alert := range firing {
		t.Errorf("%s fires: %v", alert.Labels["alertname"], alert.Labels)
	}
}

func requirePictures(t *testing.T, dir string) {
	t.Helper()
	for _, picture := range demoload.Pictures() {
		f, err := os.Open(filepath.Join(dir, picture.File))
		require.NoError(t, err)
		_, err = png.DecodeConfig(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}
