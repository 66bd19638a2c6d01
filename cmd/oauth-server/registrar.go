package main

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/app"
	"oauth-server/internal/config"
	"oauth-server/internal/secret"
)

// registryFlags choose the store or server for commands on clients and users, and the reason for a
// change.
type registryFlags struct {
	apiFlags
	settings          *settings
	reason, confirmed string
	creates, create   bool // create a missing store; without asking
	// before, for a command with creates, is called before the store is created. If it returns an
	// error or done, the command ends without creating it.
	before func() (done bool, err error)
	// later, unless empty, describes the consequences of a change made directly in a database.
	later string
}

// registryCommands makes commands on clients and users, which work on a store or on a server.
type registryCommands struct {
	*cli
	flags map[*cobra.Command]*registryFlags // for completions
}

func newRegistryCommands(c *cli) *registryCommands {
	return &registryCommands{cli: c, flags: map[*cobra.Command]*registryFlags{}}
}

const serverUsage = "admin address of a server to work on (default OAUTH_SERVER, or the store)"

// onRegistry adds the flags that select the store or server to a command, and runs do there.
func (c *registryCommands) onRegistry(cmd *cobra.Command, do func(ctx context.Context, r *adminclient.Accounts, args []string) error) *cobra.Command {
	return c.onRegistryOf(cmd, &registryFlags{}, do)
}

func (c *registryCommands) onRegistryOf(cmd *cobra.Command, f *registryFlags, do func(ctx context.Context, r *adminclient.Accounts, args []string) error) *cobra.Command {
	f.cli = c.cli
	f.settings = addSettings(cmd, config.Option.IsStore)
	storeInTopic(cmd)
	f.add(cmd.Flags(), serverUsage)
	c.flags[cmd] = f
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return unanswered(cmd, args, f.with(cmd.Context(), func(r *adminclient.Accounts) error { return do(cmd.Context(), r, args) }))
	}
	return cmd
}

// changes adds the flags common to all changes.
func (f *registryFlags) changes(cmd *cobra.Command) *registryFlags {
	cmd.Flags().StringVar(&f.reason, "reason", "", "reason for the change, kept in the audit trail")
	cmd.Flags().StringVar(&f.confirmed, "confirm", "", "the ID or name again, to change it although that may lock operators out")
	return f
}

// changing is [registryCommands.onRegistry] for a change.
func (c *registryCommands) changing(cmd *cobra.Command, do func(ctx context.Context, r *adminclient.Accounts, args []string) error) *cobra.Command {
	f := &registryFlags{}
	return c.onRegistryOf(cmd, f.changes(cmd), do)
}

// creating is [registryCommands.changing] for a command that may create the store, unless before ends it.
func (c *registryCommands) creating(cmd *cobra.Command, before func() (done bool, err error), do func(ctx context.Context, r *adminclient.Accounts, args []string) error) *registryFlags {
	f := &registryFlags{creates: true, before: before}
	cmd.Flags().BoolVar(&f.create, "create", false, "make the data file if there is none, without asking")
	c.onRegistryOf(cmd, f.changes(cmd), do)
	return f
}

// with runs do on the named server, on the store, or on the server that holds the store's file. It
// reports its choice on standard error.
func (f *registryFlags) with(ctx context.Context, do func(*adminclient.Accounts) error) error {
	if f.server != "" {
		return f.onServer("--server", do)
	}
	if f.server = f.variable("OAUTH_SERVER"); f.server != "" {
		return f.onServer("OAUTH_SERVER", do)
	}
	cfg, err := config.LoadStore(f.settings.sources(f.environ))
	if err != nil {
		return err
	}
	open := withExisting
	if f.creates {
		if isNew(cfg) {
			if done, err := f.before(); done || err != nil {
				return err
			}
		}
		open = func(ctx context.Context, cfg *config.Config, do func(app.Store) error) error {
			return f.withNew(ctx, cfg, f.create, do)
		}
	}
	err = open(ctx, cfg, func(store app.Store) error { //nolint:contextcheck // requests have their own
		f.note("using %s directly", nameOf(cfg))
		api, err := admin.New(admin.Options{Registry: store, Events: store, Operator: whoami()})
		if err != nil {
			return err
		}
		return do(f.accounts(adminclient.InProcess(api)))
	})
	if errors.Is(err, app.ErrStoreHeld) {
		return f.onHolder(ctx, cfg.Store.Embedded.Path, err, do)
	}
	if err == nil && cfg.Store.MongoDB != nil && f.later != "" {
		f.note("%s", f.later)
	}
	return err
}

// onServer runs do on a server. by is the flag or variable that names it.
func (f *registryFlags) onServer(by string, do func(*adminclient.Accounts) error) error {
	if name := f.settings.storeFlag(); name != "" {
		return usagef("%s and --%s contradict each other: name the server or the store", by, name)
	}
	api, err := f.connect()
	if err != nil {
		return err
	}
	f.note("using the admin API at %s", f.server)
	return do(f.accounts(api))
}

func (f *registryFlags) accounts(api *adminclient.Client) *adminclient.Accounts {
	return &adminclient.Accounts{
		Client: api, Reason: f.reason, Confirmed: f.confirmed, Timeout: f.timeout,
		Warn: func(message string) { f.note("%s", message) },
	}
}

// onHolder runs do on the server that holds a data file. It returns held if there is no such
// server.
func (f *registryFlags) onHolder(ctx context.Context, dataFile string, held error, do func(*adminclient.Accounts) error) error {
	api, err := f.holder(ctx, dataFile, held)
	if err != nil {
		return err
	}
	return do(f.accounts(api))
}

// holder returns the admin API of the server that holds a data file. The server's address and a key
// are stored beside the file. An account that can read them could also open the file once the server
// has stopped. It returns held if there is no such server.
func (l *apiFlags) holder(ctx context.Context, dataFile string, held error) (*adminclient.Client, error) {
	access, err := adminlocal.Read(dataFile)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", held, err)
	}
	if l.token == "" && l.clientID == "" { // no flags given: the key is enough
		l.token = access.Token()
	}
	l.server, l.local = access.URL, &access
	api, err := l.connect()
	if err != nil {
		return nil, err
	}
	if err := l.prove(ctx, api, &access); err != nil {
		return nil, fmt.Errorf("%w (%w)", held, err)
	}
	api.Header = http.Header{adminlocal.OperatorHeader: {whoami()}}
	l.note("using the admin API at %s, because that server holds %s", access.URL, dataFile)
	return api, nil
}

// prove returns an error unless the server at the address proves that it has the key in access.
func (l *apiFlags) prove(ctx context.Context, api *adminclient.Client, access *adminlocal.Access) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, access.URL+"/healthz", nil)
	if err != nil {
		return err
	}
	challenge := secret.ID()
	req.Header.Set(adminlocal.ChallengeHeader, challenge)
	client := *api.HTTP
	client.Transport = access.Transport(client.Transport) // may be for the key of an earlier server
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if errors.Is(err, adminlocal.ErrOther) {
		return fmt.Errorf("what answers at %s is another server", access.URL)
	}
	if err != nil {
		return fmt.Errorf("the admin address beside it does not answer: %w", err)
	}
	_ = res.Body.Close()
	if !hmac.Equal([]byte(res.Header.Get(adminlocal.ProofHeader)), []byte(access.Proof(challenge))) {
		return fmt.Errorf("what answers at %s is another server", access.URL)
	}
	return nil
}

// whoami returns user@host, for the audit trail.
func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
