package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/observe/accesslog"
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
		Long: `Run the server until SIGTERM or SIGINT, then stop gracefully; a second signal quits at once.
After SIGTERM, requests are still taken for --drain-delay while /readyz fails, so that load
balancers turn to other instances; after SIGINT (Ctrl-C) the stop begins at once.

Every setting can be given in the file of --config, in the environment and as a
flag; each overrides the one before. --mongodb-uri is OAUTH_MONGODB_URI, and so on.
A changed file is used while the server runs, as far as it can be, a few seconds later
or at once after SIGHUP. One that is not valid, is empty or locks an operator's client
out is not used, and logged.`,
		Example: `  oauth-server serve --demo
  oauth-server serve --config oauth-server.yaml --check-config
  oauth-server serve --listen 127.0.0.1:9096 --data /var/lib/oauth-server.db`,
	}
	p := &program{Env: c, environment: true, load: loadServer, runDemo: serveDemo}
	p.register(cmd, "run on a temporary store with demo clients and a demo user, and print commands to paste",
		func(o config.Option) bool { return !o.IsGateway() })
	return cmd
}

// NewGateway makes the command that runs a gateway.
func NewGateway(c *command.Env) *cobra.Command {
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
	}
	p := &program{Env: c, load: loadGateway, runDemo: gatewayDemo}
	p.register(cmd, "run before a small server of its own, and print commands to paste", func(config.Option) bool { return true })
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
	cmd.Flags().BoolVar(&p.print, "print-config", false, "print the effective configuration, as --config reads it, and exit")
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
		signal.Stop(p.Hangups)
		return p.runDemo(ctx, p.Env, sources)
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
	if sources.Path() == "" && p.Terminal { // SIGHUP means that the terminal was closed
		signal.Stop(p.Hangups)
	}
	return runServer(ctx, p.Env, cfg, app.Options{Sources: &sources, Reread: p.Hangups})
}

func loadServer(sources config.Sources, _ bool) (*config.Config, error) {
	cfg, err := config.Load(sources)
	if err == nil && cfg.Gateway.Enabled() {
		err = command.Usagef("gateway.upstream or gateway.judge is set: this is the configuration of a gateway; run oauth-server gateway, or leave it out")
	}
	return cfg, err
}

func loadGateway(sources config.Sources, demo bool) (*config.Config, error) {
	if demo {
		return gatewayDemoConfig(sources, "gateway.db", "http://127.0.0.1")
	}
	cfg, err := config.Load(sources)
	if err == nil && !cfg.Gateway.Enabled() {
		err = command.Usagef("--upstream is missing: the URL of the server whose token endpoint is to be limited; or --judge, before another proxy")
	}
	return cfg, err
}

// runServer serves until ctx ends. It adds the configured logger to opts.
func runServer(ctx context.Context, c *command.Env, cfg *config.Config, opts app.Options) (err error) {
	log := accesslog.NewBatch(c.ErrOut)
	defer func() { err = errors.Join(err, log.Unbuffer()) }()
	defer context.AfterFunc(ctx, func() { _ = log.Unbuffer() })() // a second signal ends the process at once; the last call returns the error
	opts.Level = &slog.LevelVar{}
	opts.Logger = slog.New(log.Handler(app.NewLeveledLogger(cfg.Log, opts.Level, log).Handler()))
	opts.Memory, _ = heapfloor.Memory(os.DirFS("/"))
	opts.Quota = hashing.Quota(os.DirFS("/"), runtime.NumCPU())
	defer hashSeparately(ctx, cfg, &opts)()
	hashes := hashesPasswords(cfg, &opts)
	raiseProcs(ctx, cfg.Store.Embedded != nil || hashes, os.LookupEnv, opts.Logger)
	floor := heapfloor.Choose(os.LookupEnv, os.DirFS("/"), hashes)
	opts.Logger.LogAttrs(ctx, slog.LevelDebug, "heap floor chosen, below which no garbage is collected", slog.Any("heap", floor))
	keeper := keepHeap(floor, cfg)
	defer keeper.Stop()
	return app.Serve(ctx, cfg, opts)
}

// keepHeap lets the heap grow to the floor before garbage is collected. Above the floor, a gateway
// collects more often: its large tables (users by refresh token, and counters) contain no pointers,
// so this saves memory and costs little.
func keepHeap(floor heapfloor.Choice, cfg *config.Config) *heapfloor.Keeper {
	if cfg.Gateway.Enabled() {
		return floor.KeepAbove(50)
	}
	return floor.Keep()
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
