package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/overload/hashing"
	"oauth-server/internal/overload/heapfloor"
	"oauth-server/internal/strict/fielderr"

	"github.com/spf13/cobra"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	check, print, demo bool
	*command.Settings
}

// New makes the command that runs a server.
func New(c *command.Env) *cobra.Command {
	f := &serveFlags{}
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
		Args: command.Takes(),
	}
	cmd.Flags().BoolVar(&f.check, "check-config", false, "validate the configuration and exit")
	cmd.Flags().BoolVar(&f.print, "print-config", false, "print the effective configuration, as --config reads it, and exit")
	cmd.Flags().BoolVar(&f.demo, "demo", false, "run on a temporary store with demo clients and a demo user, and print commands to paste")
	f.Settings = command.AddSettings(cmd, func(o config.Option) bool { return !o.IsGateway() })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), c, f) }
	return cmd
}

// complete sets the missing flags from the environment.
func (f *serveFlags) complete(c *command.Env) error {
	for name, flag := range map[string]*bool{
		"OAUTH_CHECK_CONFIG": &f.check, "OAUTH_PRINT_CONFIG": &f.print, "OAUTH_DEMO": &f.demo,
	} {
		value := c.Variable(name)
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

func runServe(ctx context.Context, c *command.Env, f *serveFlags) error {
	c.CatchHangups()
	if err := f.complete(c); err != nil {
		return err
	}
	ctx, cancel := command.UntilSignal(ctx)
	defer cancel()
	sources := f.Sources(c.Environ)
	if f.demo && !f.check && !f.print {
		signal.Stop(c.Hangups)
		return serveDemo(ctx, c, sources)
	}
	cfg, err := config.Load(sources)
	if err == nil && cfg.Gateway.Enabled() {
		err = command.Usagef("gateway.upstream or gateway.judge is set: this is the configuration of a gateway; run oauth-server gateway, or leave it out")
	}
	switch {
	case f.check:
		return showCheck(c, err)
	case err != nil:
		return err
	case f.print:
		return showConfig(c, cfg)
	}
	if sources.Path() == "" && c.Terminal { // SIGHUP means that the terminal was closed
		signal.Stop(c.Hangups)
	}
	return runServer(ctx, c, cfg, app.Options{Sources: &sources, Reread: c.Hangups})
}

// runServer serves until ctx ends. It adds the configured logger to opts.
func runServer(ctx context.Context, c *command.Env, cfg *config.Config, opts app.Options) error {
	opts.Level = &slog.LevelVar{}
	opts.Logger = app.NewLeveledLogger(cfg.Log, opts.Level, c.ErrOut)
	opts.Memory, _ = heapfloor.Memory(os.DirFS("/"))
	opts.Quota = hashing.Quota(os.DirFS("/"), runtime.NumCPU())
	defer hashSeparately(ctx, cfg, &opts)()
	hashesHere := opts.Separate == nil
	raiseProcs(ctx, cfg.Store.Embedded != nil || hashesHere, os.LookupEnv, opts.Logger)
	floor := heapfloor.Choose(os.LookupEnv, os.DirFS("/"), hashesHere)
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
