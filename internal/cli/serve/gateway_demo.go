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

// gatewayDemo runs a gateway and a small upstream server, both on temporary stores, until ctx ends.
// It then removes the stores.
func gatewayDemo(ctx context.Context, c *command.Env, sources config.Sources) (err error) {
	dir, err := os.MkdirTemp("", "oauth-gateway-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
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
	return runServer(ctx, c, cfg, app.Options{
		Prepare: func(ctx context.Context, store app.Store) (err error) {
			up.demo.AdminSecret, err = newDemoOperator(ctx, store, up.demo.AdminClientID, time.Now())
			return err
		},
		Listening: func(s *app.Server) {
			if err := showGatewayDemo(c, up.demo, "http://"+s.Addr(), s.AdminURL(), dir); err != nil {
				c.Note("oauth-server: show the demo: %v", err)
			}
		},
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

func showGatewayDemo(c *command.Env, d *demoData, gateway, admin, dir string) error {
	lines := d.GatewayLines(gateway, admin, dir)
	if c.Output == command.OutputJSON {
		return c.JSON(struct {
			Gateway string `json:"gateway"`
			*demoData
			Lines []demoLine `json:"lines"`
		}{gateway, d, lines})
	}
	_, err := fmt.Fprintf(c.Out, `# A gateway at %s before a server that knows nothing of it, which end with Ctrl-C and leave nothing behind.
# Client %s with secret %s; user %s with the password %s. The gateway has none of them.
`, gateway, d.ClientID, d.ClientSecret, d.Username, d.Password)
	return errors.Join(err, showLines(c, lines))
}
