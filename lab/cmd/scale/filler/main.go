// Command filler fills the store of a release that cmd/scale measures. It is built with the sources of that
// release, because only these know how it stores what it stores:
//
//	filler -clients 100000 -policies 0 -data FILE
//	filler -clients 100000 -mongodb-uri URI -mongodb-database NAME
//	filler -register 20 -data FILE    # prints how long registrations take, in microseconds
//
// The file policies.go is replaced for the release before, see the folder old.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

type settings struct {
	clients, policies, register int
	data, uri, database         string
}

func main() {
	var o settings
	flag.IntVar(&o.clients, "clients", 0, "number of clients to make")
	flag.IntVar(&o.policies, "policies", 0, "number of policies to make")
	flag.IntVar(&o.register, "register", 0, "number of clients to register and to read, one by one")
	flag.StringVar(&o.data, "data", "", "file of the embedded store")
	flag.StringVar(&o.uri, "mongodb-uri", "", "MongoDB, in place of the file")
	flag.StringVar(&o.database, "mongodb-database", "", "its database, which is migrated")
	flag.Parse()
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "filler:", err)
		os.Exit(1)
	}
}

func (o *settings) run(ctx context.Context) (err error) {
	where := config.Store{Embedded: &config.Embedded{Path: o.data}}
	if o.uri != "" {
		where = config.Store{MongoDB: &config.MongoDB{URI: o.uri, Database: o.database}}
	}
	opened, err := app.OpenStore(ctx, where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if err := fillStore(ctx, opened, o.clients); err != nil {
		return err
	}
	if o.policies > 0 {
		if err := fillPolicies(ctx, opened, o.policies); err != nil {
			return err
		}
	}
	return o.measure(ctx, opened)
}

// measure registers clients, and takes the time until the directory of the same process has each.
func (o *settings) measure(ctx context.Context, opened app.Store) error {
	if o.register == 0 {
		return nil
	}
	follower, err := store.NewFollower(ctx, opened)
	if err != nil {
		return err
	}
	source, err := clientcfg.NewSource(ctx, follower, nil)
	if err != nil {
		return err
	}
	took := make([]float64, 0, o.register)
	for i := range o.register {
		c := client(i)
		c.ID = fmt.Sprint("registered-", i, "-", secret.ID())
		began := time.Now()
		if err := errors.Join(opened.CreateClient(ctx, c, clientcfg.Event{}), follower.Refresh(ctx)); err != nil {
			return err
		}
		if _, ok := source.Client(c.ID); !ok {
			return fmt.Errorf("%s is registered and not found: %w", c.ID, clientcfg.ErrNotFound)
		}
		took = append(took, float64(time.Since(began).Microseconds()))
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}
