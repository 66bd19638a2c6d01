// Command oauth-traffic registers the demo clients of lab/traffic and sends
// their token requests to running servers, so that the dashboards have data. It
// is for demonstrations: do not use it with a database in production.
//
//	oauth-traffic prepare -credentials FILE -mongodb-uri-file FILE
//	oauth-traffic run     -credentials FILE -target http://127.0.0.1:9096
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/config"
	"oauth-server/lab/traffic"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT) //nolint:forbidigo // the context of the program
	summary, err := run(ctx, os.Args[1:])
	stop()
	fmt.Print(summary)
	if err != nil {
		fmt.Fprintln(os.Stderr, "oauth-traffic:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: oauth-traffic prepare -credentials FILE -mongodb-uri-file FILE, or oauth-traffic run -credentials FILE -target URL")

func run(ctx context.Context, args []string) (traffic.Summary, error) {
	flags := flag.NewFlagSet("oauth-traffic", flag.ContinueOnError)
	file := flags.String("credentials", "", "file for the secrets and passwords")
	uriFile := flags.String("mongodb-uri-file", "", "file that holds the URI of the MongoDB of the servers")
	target := flags.String("target", "", "URL of the servers")
	if len(args) == 0 {
		return nil, errUsage
	}
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	switch {
	case *file != "" && args[0] == "prepare" && *uriFile != "":
		return nil, prepare(ctx, *file, *uriFile)
	case *file != "" && args[0] == "run" && *target != "":
		credentials, err := traffic.ReadCredentials(*file)
		if err != nil {
			return nil, err
		}
		return traffic.Run(ctx, traffic.Options{Targets: []string{*target}, Credentials: credentials, Clients: traffic.DemoClients()}), nil
	}
	return nil, errUsage
}

// prepare registers the clients and writes the file of credentials. If the file exists it
// does nothing: the secrets may be in use.
func prepare(ctx context.Context, file, uriFile string) error {
	if _, err := traffic.ReadCredentials(file); err == nil {
		return nil
	}
	cfg, err := config.LoadStore(config.Sources{Flags: []config.FlagValue{{Name: "mongodb-uri-file", Value: uriFile}}})
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
	return credentials.WriteFile(file)
}
