package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
)

// inTemp runs do with a temporary directory and removes it.
func inTemp(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "oauth-server-demo-")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

// serveDemo runs a server on a temporary store until ctx ends.
func serveDemo(ctx context.Context, c *command.Env, sources config.Sources) error {
	return inTemp(func(dir string) error {
		path := filepath.Join(dir, "demo.db")
		sources.Base = demoConfig(path)
		cfg, err := config.Load(sources)
		if err != nil {
			return err
		}
		if e := cfg.Store.Embedded; e == nil || e.Path != path {
			return command.Usagef("--demo uses a temporary store: leave out --data, --mongodb-uri and store settings")
		}
		var demo *demoData
		return runServer(ctx, c, cfg, app.Options{
			Prepare: func(ctx context.Context, store app.Store) (err error) {
				demo, err = newDemo(ctx, store, time.Now())
				return err
			},
			Listening: func(s *app.Server) {
				showDemo(c, dir, shownDemo{Issuer: s.Issuer(), demoData: demo, Lines: demo.Lines(s.Issuer(), s.AdminURL(), dir)}, s.AdminURL())
			},
		})
	})
}

// shownDemo is a demo in the JSON of --demo.
type shownDemo struct {
	Issuer  string `json:"issuer,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	*demoData
	Lines []demoLine `json:"lines"`
}

// showDemo writes a demo: as JSON, or the files of a demo and what to do with them. admin is the URL of
// the admin API; empty if it is not served.
func showDemo(c *command.Env, dir string, demo shownDemo, admin string) {
	var err error
	if c.Output == command.OutputJSON {
		err = c.JSON(demo)
	} else if err = demo.writeFiles(dir, admin); err == nil {
		_, err = fmt.Fprint(c.Out, demo.text(dir, admin))
	}
	if err != nil {
		c.Note("oauth-server: show the demo: %v", err)
	}
}

// writeFiles writes the variables of the text to the file env in dir, and all lines to commands.
func (d *shownDemo) writeFiles(dir, admin string) error {
	env := fmt.Sprintf("URL=%s\nDEMO='%s:%s'\nBUSY='%s:%s'\n", cmp.Or(d.Issuer, d.Gateway), d.ClientID, d.ClientSecret, d.BusyClientID, d.BusySecret)
	if admin != "" {
		env += fmt.Sprintf("export OAUTH_SERVER=%s OAUTH_ISSUER=%s OAUTH_CLIENT_ID=%s OAUTH_CLIENT_SECRET='%s'\n",
			admin, cmp.Or(d.Issuer, admin), d.AdminClientID, d.AdminSecret)
	}
	var commands strings.Builder
	for _, l := range d.Lines {
		fmt.Fprintf(&commands, "# %s\n%s\n\n", l.Title, l.Command)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "env"), []byte(env), 0o600),
		os.WriteFile(filepath.Join(dir, "commands"), []byte(commands.String()), 0o600),
	)
}

// text returns at most twelve lines: what runs, and commands to paste.
func (d *shownDemo) text(dir, admin string) string {
	var what, limits string
	if d.Gateway != "" {
		what = fmt.Sprintf("# A gateway at %s in front of a small token server. Ctrl-C ends both.\n", d.Gateway)
	} else {
		what = fmt.Sprintf("# A demo at %s. Ctrl-C ends it and removes everything.\n"+
			"# Open %[1]s/consents and sign in as %s with the password %s.\n", d.Issuer, d.Username, d.Password)
	}
	if admin != "" {
		limits = "# Show the limits (go install ./cmd/oauth-server installs the command):\noauth-server limits list --all\n"
	}
	return fmt.Sprintf(`%[1]s# Paste this first. It sets URL, DEMO, BUSY and the credentials of an operator:
. '%[2]s/env'
# Get a token, then send 12 requests against a limit of 10 a minute:
curl -u $DEMO -d grant_type=client_credentials $URL/token
for i in $(seq 12); do curl -siu $BUSY -d grant_type=client_credentials $URL/token | sed 1q; done
%[3]s# More commands to paste: %[2]s/commands
`, what, dir, limits)
}

// gatewayDemo runs a gateway and a small upstream server, both on temporary stores, until ctx ends.
func gatewayDemo(ctx context.Context, c *command.Env, sources config.Sources) error {
	return inTemp(func(dir string) (err error) {
		ctx, cancel := context.WithCancel(ctx)
		up := &demoUpstream{ended: make(chan error, 1)}
		defer func() {
			cancel()
			err = errors.Join(err, <-up.ended)
		}()
		if err := up.start(ctx, filepath.Join(dir, "upstream.db")); err != nil || ctx.Err() != nil {
			return err
		}
		cfg, err := gatewayDemoConfig(sources, filepath.Join(dir, "gateway.db"), up.address)
		if err != nil {
			return err
		}
		demo := up.demo
		return runServer(ctx, c, cfg, app.Options{
			Prepare: func(ctx context.Context, store app.Store) (err error) {
				demo.AdminSecret, err = newDemoOperator(ctx, store, demo.AdminClientID, time.Now())
				return err
			},
			Listening: func(s *app.Server) {
				gateway := "http://" + s.Addr()
				showDemo(c, dir, shownDemo{Gateway: gateway, demoData: demo, Lines: demo.GatewayLines(gateway, s.AdminURL(), dir)}, s.AdminURL())
			},
		})
	})
}

// gatewayDemoConfig returns the configuration of a gateway with a temporary store, in front of
// upstream. It is based on sources.
func gatewayDemoConfig(sources config.Sources, store, upstream string) (*config.Config, error) {
	sources.Base = demoConfig(store)
	sources.Base.Gateway.Upstream, sources.Base.Gateway.TokenPath = upstream, []string{"/token"}
	cfg, err := config.Load(sources)
	if err != nil {
		return nil, err
	}
	if e := cfg.Store.Embedded; e == nil || e.Path != store || cfg.Gateway.Upstream != upstream {
		return nil, command.Usagef("--demo uses its own upstream and a temporary store: leave out --upstream, --data, --mongodb-uri and store settings")
	}
	return cfg, nil
}

// demoUpstream is a server without limits.
type demoUpstream struct {
	demo    *demoData
	address string
	ended   chan error
}

// start starts the server and returns once it answers or ctx ends. The server stops with ctx.
func (u *demoUpstream) start(ctx context.Context, path string) error {
	cfg := demoConfig(path)
	cfg.Listen, cfg.AdminListen, cfg.RateLimit.Mode = "127.0.0.1:0", "", ratelimit.Off
	listening := make(chan string, 1)
	go func() {
		u.ended <- app.Serve(ctx, cfg, app.Options{
			Prepare: func(ctx context.Context, store app.Store) (err error) {
				u.demo, err = newDemo(ctx, store, time.Now())
				return err
			},
			Listening: func(s *app.Server) { listening <- s.Issuer() },
		})
	}()
	select {
	case u.address = <-listening:
		return nil
	case err := <-u.ended:
		u.ended <- nil
		if ctx.Err() == nil {
			err = errors.Join(errors.New("the demo's upstream stopped"), err)
		}
		return err
	}
}
