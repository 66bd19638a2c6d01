package serve

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/overload/hashing"
	"oauth-server/internal/overload/heapfloor"
	"oauth-server/internal/strict/fielderr"
)

// program is serve or gateway.
type program struct {
	*command.Env
	*command.Settings
	check, print, demo bool

	// environment: its own flags can be given as variables too.
	environment bool
	// load reads the configuration, with demo that of --demo.
	load func(sources config.Sources, demo bool) (*config.Config, error)
	// runDemo runs it on temporary stores.
	runDemo func(ctx context.Context, c *command.Env, sources config.Sources) error
}

// New makes the command that runs a server.
func New(c *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server until SIGTERM or SIGINT, then stop gracefully. A second signal stops it immediately.
After SIGTERM, the server keeps serving for --drain-delay while /readyz fails, so that load
balancers switch to other instances. SIGINT (Ctrl-C) skips the delay.

Give settings in the --config file, as environment variables (OAUTH_MONGODB_URI) or as flags
(--mongodb-uri); a later one overrides an earlier one. The server rereads a changed file within
seconds, or immediately on SIGHUP. It logs settings that need a restart, and rejects a file that is
empty, invalid, or would lock out an admin client.`,
		Example: `  oauth-server serve --demo
  oauth-server serve --config oauth-server.yaml --check-config
  oauth-server serve --listen 127.0.0.1:9096 --data /var/lib/oauth-server.db`,
	}
	p := &program{Env: c, environment: true, load: loadServer, runDemo: serveDemo}
	p.register(cmd, "run with demo data in a temporary store, and print commands to paste",
		func(o config.Option) bool { return !o.IsGateway() })
	return cmd
}

// NewGateway makes the command that runs a gateway.
func NewGateway(c *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run a gateway that limits the token endpoint of another server",
		Long: `Run a gateway in front of another OAuth server until SIGTERM or SIGINT. It limits requests to the
token endpoint per client and user, and passes all others unchanged. You need not register clients.

With --judge, the gateway is not a proxy. It tells nginx, Traefik or APISIX at /judge, or Envoy at
--envoy-listen, whether a token request may pass.

Limits, dry-run, metrics and operator commands work as with oauth-server serve.`,
		Example: `  oauth-server gateway --demo
  oauth-server gateway --upstream https://idp --token-path /oauth2/token
  oauth-server gateway --upstream https://idp --token-path '/realms/*/protocol/openid-connect/token'`,
	}
	p := &program{Env: c, load: loadGateway, runDemo: gatewayDemo}
	p.register(cmd, "run in front of a demo server, and print commands to paste", func(config.Option) bool { return true })
	for _, o := range config.Options() {
		if o.IsOwn() {
			cmd.Flags().Lookup(o.Name).Hidden = true
		}
	}
	return cmd
}

func (p *program) register(cmd *cobra.Command, demo string, wanted func(config.Option) bool) {
	cmd.Args = command.Takes()
	cmd.Flags().BoolVar(&p.check, "check-config", false, "validate the configuration and exit")
	cmd.Flags().BoolVar(&p.print, "print-config", false, "print the effective configuration as YAML, and exit")
	cmd.Flags().BoolVar(&p.demo, "demo", false, demo)
	p.Settings = command.AddSettings(cmd, wanted)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) }
}

// complete sets the missing flags from the environment.
func (p *program) complete() error {
	if !p.environment {
		return nil
	}
	for name, flag := range map[string]*bool{
		"OAUTH_CHECK_CONFIG": &p.check, "OAUTH_PRINT_CONFIG": &p.print, "OAUTH_DEMO": &p.demo,
	} {
		value := p.Variable(name)
		if value == "" || *flag {
			continue
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return command.Usagef("%s: %q is neither true nor false", name, value)
		}
		*flag = on
	}
	return nil
}

func (p *program) run(ctx context.Context) error {
	p.CatchHangups()
	if err := p.complete(); err != nil {
		return err
	}
	ctx, cancel := command.UntilSignal(ctx)
	defer cancel()
	sources := p.Sources(p.Environ)
	if p.demo && !p.check && !p.print {
		return p.runDemo(p.UntilHangup(ctx), p.Env, sources)
	}
	cfg, err := p.load(sources, p.demo && p.check)
	switch {
	case p.check:
		return showCheck(p.Env, err)
	case err != nil:
		return err
	case p.print:
		return showConfig(p.Env, cfg)
	}
	opts := app.Options{Sources: &sources, Reread: p.Hangups}
	if sources.Path() == "" && p.Terminal { // SIGHUP means that the terminal was closed
		ctx, opts.Reread = p.UntilHangup(ctx), nil
	}
	return runServer(ctx, p.Env, cfg, opts)
}

func loadServer(sources config.Sources, _ bool) (*config.Config, error) {
	cfg, err := config.Load(sources)
	if err == nil && cfg.Gateway.Enabled() {
		err = command.Usagef("gateway.upstream or gateway.judge is set: run oauth-server gateway, or remove the setting")
	}
	return cfg, err
}

func loadGateway(sources config.Sources, demo bool) (*config.Config, error) {
	if demo {
		return gatewayDemoConfig(sources, "gateway.db", "http://127.0.0.1")
	}
	cfg, err := config.Load(sources)
	if err == nil && !cfg.Gateway.Enabled() {
		err = command.Usagef("--upstream is missing: give the URL of the server to limit, or --judge to answer another proxy")
	}
	return cfg, err
}

// runServer serves until ctx ends. It adds the configured logger to opts.
func runServer(ctx context.Context, c *command.Env, cfg *config.Config, opts app.Options) (err error) {
	signal.Ignore(syscall.SIGPIPE) // a log without a reader is one that cannot be written, and does not end the process
	defer signal.Reset(syscall.SIGPIPE)
	opts.Level = &slog.LevelVar{}
	var unbuffer func() error
	opts.Logger, unbuffer = app.NewBatchLogger(cfg.Log, opts.Level, c.ErrOut)
	defer func() { err = errors.Join(err, unbuffer()) }()
	defer context.AfterFunc(ctx, func() { _ = unbuffer() })() // a second signal ends the process at once; the last call returns the error
	stdlog.SetFlags(0)                                        // the logger adds the time
	stdlog.SetOutput(fromLibraries{opts.Logger})
	opts.Memory, _ = heapfloor.Memory(os.DirFS("/"))
	opts.Quota = hashing.Quota(os.DirFS("/"), runtime.NumCPU())
	defer hashSeparately(ctx, cfg, &opts)()
	hashes := hashesPasswords(cfg, &opts)
	raiseProcs(ctx, cfg.Store.Embedded != nil || hashes, os.LookupEnv, opts.Logger)
	floor := heapfloor.Choose(os.LookupEnv, os.DirFS("/"), hashes)
	opts.Logger.LogAttrs(ctx, slog.LevelDebug, "heap floor chosen", slog.Any("heap", floor))
	gogc := 100
	if cfg.Gateway.Enabled() { // its large tables, users by refresh token and counters, contain no pointers: collecting them costs little
		gogc = 50
	}
	defer floor.Keep(gogc)()
	return app.Serve(ctx, cfg, opts)
}

// showCheck writes the result of --check-config.
func showCheck(c *command.Env, err error) error {
	if c.Output != command.OutputJSON {
		if err == nil {
			_, err = fmt.Fprintln(c.Out, "ok")
		}
		return err
	}
	problems := fielderr.Of(err)
	if err != nil && problems == nil {
		return err
	}
	out := struct {
		OK       bool            `json:"ok"`
		Problems fielderr.Errors `json:"problems"`
	}{err == nil, append(fielderr.Errors{}, problems...)}
	if failed := c.JSON(out); failed != nil || err == nil {
		return failed
	}
	return command.Usage(command.ErrReported)
}

// showConfig writes the configuration for --print-config. --config reads both formats, because JSON
// is YAML.
func showConfig(c *command.Env, cfg *config.Config) error {
	if c.Output == command.OutputJSON {
		return cfg.WriteJSON(c.Out)
	}
	return cfg.WriteYAML(c.Out)
}
