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
				text := fmt.Sprintf(`# A demo at %s, which ends with Ctrl-C and leaves nothing behind.
# Client %s with secret %s; public client %s.
# Sign in as %s with the password %s.
`, s.Issuer(), demo.ClientID, demo.ClientSecret, demo.PublicClientID, demo.Username, demo.Password)
				showDemo(c, shownDemo{Issuer: s.Issuer(), demoData: demo, Lines: demo.Lines(s.Issuer(), s.AdminURL(), dir)}, text)
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

// showDemo writes a demo: for a person the text, and the commands for pasting.
func showDemo(c *command.Env, demo shownDemo, text string) {
	var err error
	if c.Output == command.OutputJSON {
		err = c.JSON(demo)
	} else {
		for _, l := range demo.Lines {
			text += fmt.Sprintf("\n# %s\n%s\n", l.Title, l.Command)
		}
		_, err = fmt.Fprint(c.Out, text)
	}
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
				text := fmt.Sprintf(`# A gateway at %s before a server that knows nothing of it, which end with Ctrl-C and leave nothing behind.
# Client %s with secret %s; user %s with the password %s. The gateway has none of them.
`, gateway, demo.ClientID, demo.ClientSecret, demo.Username, demo.Password)
				showDemo(c, shownDemo{Gateway: gateway, demoData: demo, Lines: demo.GatewayLines(gateway, s.AdminURL(), dir)}, text)
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
