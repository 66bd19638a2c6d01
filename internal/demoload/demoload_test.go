package demoload_test

import (
	"context"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		t.Skip("prometheus is not installed (Debian: apt-get install prometheus)")
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
	empty := waitForPanels(ctx, t, demo.Prometheus)
	cancel()
	summary := <-played

	require.Empty(t, empty, "panels without data\n%s", summary)
	require.Positive(t, summary["integrator"]["429"], summary.String())
	require.Zero(t, summary["mobile-app"]["429"], "a trusted client was denied")
	require.Zero(t, summary.Total("error"), summary.String())
	requireNoAlert(t, demo.Prometheus)
	requirePictures(t, demo.Prometheus, dir, from)
}

// waitForPanels returns the panels that have no data when all have or the
// context ends.
func waitForPanels(ctx context.Context, t *testing.T, p *demoload.Prometheus) []string {
	t.Helper()
	for {
		empty, err := p.Empty(t.Context())
		require.NoError(t, err)
		if len(empty) == 0 || ctx.Err() != nil {
			return empty
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

func requirePictures(t *testing.T, p *demoload.Prometheus, dir string, from time.Time) {
	t.Helper()
	for _, picture := range demoload.Pictures() {
		picture.File = filepath.Join(dir, picture.File)
		require.NoError(t, p.Draw(t.Context(), picture, from, time.Now()))
		f, err := os.Open(picture.File)
		require.NoError(t, err)
		_, err = png.DecodeConfig(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}
