package serve

import (
	"context"
	"os/signal"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"

	"github.com/spf13/cobra"
)

// gatewayFlags are the flags of gateway.
type gatewayFlags struct {
	check, print, demo bool
	*command.Settings
}

// NewGateway makes the command that runs a gateway.
func NewGateway(c *command.Env) *cobra.Command {
	f := &gatewayFlags{}
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Put the limits before the token endpoint of another server",
		Long: `Run a gateway before another OAuth server until SIGTERM or SIGINT: requests to its token
endpoint are limited per client and user, all others pass unchanged. No client has to be
registered. With --judge it is no proxy, but answers nginx, Traefik or APISIX at /judge whether
a token request may pass, and Envoy at --envoy-listen.

Limits, dry-run, metrics and the commands of operators are those of oauth-server serve.`,
		Example: `  oauth-server gateway --demo
  oauth-server gateway --upstream https://idp.example --token-path '/realms/*/token'`,
		Args: command.Takes(),
	}
	cmd.Flags().BoolVar(&f.check, "check-config", false, "validate the configuration and exit")
	cmd.Flags().BoolVar(&f.print, "print-config", false, "print the effective configuration, as --config reads it, and exit")
	cmd.Flags().BoolVar(&f.demo, "demo", false, "run before a small server of its own, and print commands to paste")
	f.Settings = command.AddSettings(cmd, func(config.Option) bool { return true })
	for _, o := range config.Options() {
		if o.IsOwn() {
			cmd.Flags().Lookup(o.Name).Hidden = true
		}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runGateway(cmd.Context(), c, f) }
	return cmd
}

func runGateway(ctx context.Context, c *command.Env, f *gatewayFlags) error {
	c.CatchHangups()
	ctx, cancel := command.UntilSignal(ctx)
	defer cancel()
	sources := f.Sources(c.Environ)
	switch {
	case f.demo && f.check:
		_, err := gatewayDemoConfig(sources, "gateway.db", "http://127.0.0.1")
		return showCheck(c, err)
	case f.demo && !f.print:
		signal.Stop(c.Hangups)
		return gatewayDemo(ctx, c, sources)
	}
	cfg, err := config.Load(sources)
	if err == nil && !cfg.Gateway.Enabled() {
		err = command.Usagef("--upstream is missing: the URL of the server whose token endpoint is to be limited; or --judge, before another proxy")
	}
	switch {
	case f.check:
		return showCheck(c, err)
	case err != nil:
		return err
	case f.print:
		return showConfig(c, cfg)
	}
	if sources.Path() == "" && c.Terminal { // as in serve
		signal.Stop(c.Hangups)
	}
	return runServer(ctx, c, cfg, app.Options{Sources: &sources, Reread: c.Hangups})
}
