// Command oauth-traffic registers the demo clients of lab/traffic and sends
// their token requests to running servers, so that the dashboards have data. It
// is for demonstrations: do not use it with a database in production.
//
//	oauth-traffic prepare -credentials FILE -mongodb-uri mongodb://…
//	oauth-traffic run     -credentials FILE -target http://127.0.0.1:9096 -target …
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/config"
	"oauth-server/lab/traffic"
)

const usage = `usage:
  oauth-traffic prepare -credentials FILE -mongodb-uri URI|-mongodb-uri-file FILE [-mongodb-database oauth]
  oauth-traffic run     -credentials FILE -target URL [-target URL]... [-for 1m] [-scale 1]
`

// errUsage is returned for an incomplete or unknown command line.
var errUsage = errors.New(strings.TrimSpace(usage))

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oauth-traffic:", err)
		os.Exit(1) //nolint:gocritic // the deferred stop has nothing left to do
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "prepare":
		return prepare(ctx, args[1:])
	case len(args) > 0 && args[0] == "run":
		return send(ctx, args[1:], out)
	}
	return errUsage
}

// prepare registers the clients and writes the file of credentials. If the file exists it
// does nothing: the secrets may be in use.
func prepare(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("prepare", flag.ContinueOnError)
	file := flags.String("credentials", "", "file to write the secrets and passwords to")
	uri := flags.String("mongodb-uri", "", "URI of the MongoDB of the servers")
	uriFile := flags.String("mongodb-uri-file", "", "file that holds the URI")
	database := flags.String("mongodb-database", config.DefaultDatabase, "name of the database")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" || *uri+*uriFile == "" {
		return errUsage
	}
	if _, err := traffic.ReadCredentials(*file); err == nil {
		return nil
	}
	cfg, err := config.LoadStore(config.Sources{Flags: []config.FlagValue{
		{Name: "mongodb-uri", Value: *uri}, {Name: "mongodb-uri-file", Value: *uriFile}, {Name: "mongodb-database", Value: *database},
	}})
	if err != nil {
		return err
	}
	store, err := app.OpenStore(ctx, cfg.Store)
	if err != nil {
		return err
	}
	credentials, err := traffic.Register(ctx, store, traffic.DemoClients(), time.Now())
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return credentials.WriteFile(*file)
}

// send sends the requests, and prints what they were answered with.
func send(ctx context.Context, args []string, out io.Writer) error {
	var o traffic.Options
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	file := flags.String("credentials", "", "file that prepare wrote")
	length := flags.Duration("for", 0, "how long to send; 0 is until stopped")
	flags.Float64Var(&o.Scale, "scale", 1, "factor for all request rates")
	flags.Func("target", "URL of a server; may be repeated", func(text string) error {
		o.Targets = append(o.Targets, strings.TrimRight(text, "/"))
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" || len(o.Targets) == 0 {
		return errUsage
	}
	var err error
	if o.Credentials, err = traffic.ReadCredentials(*file); err != nil {
		return err
	}
	o.Clients = traffic.DemoClients()
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	_, err = fmt.Fprint(out, traffic.Run(ctx, o))
	return err
}
