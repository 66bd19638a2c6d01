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
			return command.Usagef("--demo keeps everything in a temporary store: leave out --data, --mongodb-uri and the store of the configuration")
		}
		var demo *demoData
		return runServer(ctx, c, cfg, app.Options{
			Prepare: func(ctx context.Context, store app.Store) (err error) {
				demo, err = newDemo(ctx, store, time.Now())
				return err
			},
			Listening: func(s *app.Server) {
				text := fmt.Sprintf(`# A demo at %s. Ctrl-C ends it and removes everything.
# Open %[1]s/consents and sign in as %s with the password %s.
`, s.Issuer(), demo.Username, demo.Password)
				showDemo(c, dir, s.Issuer(), s.AdminURL(), shownDemo{Issuer: s.Issuer(), demoData: demo, Lines: demo.Lines(s.Issuer(), s.AdminURL(), dir)}, text)
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

// showDemo writes a demo as JSON or, for a person, text and a few commands to paste. The variables of
// these commands, and the commands of all lines, are in files in dir. url is the server or gateway.
func showDemo(c *command.Env, dir, url, admin string, demo shownDemo, text string) {
	err := func() error {
		if c.Output == command.OutputJSON {
			return c.JSON(demo)
		}
		limits := ""
		env := fmt.Sprintf("URL=%s\nDEMO='%s:%s'\nBUSY='%s:%s'\n", url, demo.ClientID, demo.ClientSecret, demo.BusyClientID, demo.BusySecret)
		if admin != "" {
			env += fmt.Sprintf("export OAUTH_SERVER=%s OAUTH_ISSUER=%s OAUTH_CLIENT_ID=%s OAUTH_CLIENT_SECRET='%s'\n",
				admin, cmp.Or(demo.Issuer, admin), demo.AdminClientID, demo.AdminSecret)
			limits = "# The limits (go install ./cmd/oauth-server installs the command):\noauth-server limits list --all\n"
		}
		var all strings.Builder
		for _, l := range demo.Lines {
			fmt.Fprintf(&all, "# %s\n%s\n\n", l.Title, l.Command)
		}
		for name, content := range map[string]string{"env": env, "commands": all.String()} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(c.Out, `%[1]s# Paste this first. It sets URL, DEMO and BUSY, and the credentials of an operator:
. %[2]s/env
# A token, and then 12 requests under a limit of 10 a minute:
curl -u $DEMO -d grant_type=client_credentials $URL/token
for i in $(seq 12); do curl -siu $BUSY -d grant_type=client_credentials $URL/token | sed 1q; done
%[3]s# Commands for every grant, to paste: %[2]s/commands
`, text, dir, limits)
		return err
	}()
	if err != nil {
		c.Note("oauth-server: show the demo: %v", err)
	}
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
				text := fmt.Sprintf("# A gateway at %s in front of a small token server. Ctrl-C ends both.\n", gateway)
				showDemo(c, dir, gateway, s.AdminURL(), shownDemo{Gateway: gateway, demoData: demo, Lines: demo.GatewayLines(gateway, s.AdminURL(), dir)}, text)
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
		return nil, command.Usagef("--demo has an upstream and a temporary store of its own: leave out --upstream, --data, --mongodb-uri and the store of the configuration")
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
			err = errors.Join(errors.New("the upstream of the demo has ended"), err)
		}
		return err
	}
}
