package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
)

// serveDemo runs a server on a temporary store until ctx ends, and removes
// the store.
func serveDemo(ctx context.Context, c *command.Env, sources config.Sources) (err error) {
	dir, err := os.MkdirTemp("", "oauth-server-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "demo.db")
	sources.Base = demoConfig(path)
	cfg, err := config.Load(sources)
	if err != nil {
		return err
	}
	if e := cfg.Store.Embedded; e == nil || e.Path != path {
		return command.Usagef("--demo keeps everything in a temporary store: leave out --data, --mongodb-uri and the store of the configuration")
	}
	var demo *demoData
	return runServer(ctx, c, cfg, app.Options{
		Prepare: func(ctx context.Context, store app.Store) (err error) {
			demo, err = newDemo(ctx, store, time.Now())
			return err
		},
		Listening: func(s *app.Server) {
			if err := showDemo(c, demo, s.Issuer(), s.AdminURL(), dir); err != nil {
				c.Note("oauth-server: show the demo: %v", err)
			}
		},
	})
}

func showDemo(c *command.Env, d *demoData, issuer, admin, dir string) error {
	lines := d.Lines(issuer, admin, dir)
	if c.Output == command.OutputJSON {
		return c.JSON(struct {
			Issuer string `json:"issuer"`
			*demoData
			Lines []demoLine `json:"lines"`
		}{issuer, d, lines})
	}
	_, err := fmt.Fprintf(c.Out, `# A demo at %s, which ends with Ctrl-C and leaves nothing behind.
# Client %s with secret %s; public client %s.
# Sign in as %s with the password %s.
`, issuer, d.ClientID, d.ClientSecret, d.PublicClientID, d.Username, d.Password)
	return errors.Join(err, showLines(c, lines))
}

// showLines writes the demo commands for pasting.
func showLines(c *command.Env, lines []demoLine) (err error) {
	for _, l := range lines {
		if _, failed := fmt.Fprintf(c.Out, "\n# %s\n%s\n", l.Title, l.Command); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}
