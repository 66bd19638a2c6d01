package connect

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
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/secret"
)

// accountFlags choose the store or server for commands on clients and users.
type accountFlags struct {
	API
	settings        *command.Settings
	creates, create bool // create a missing store; without asking
	// before, for a command with creates, is called before the store is created. If it returns an
	// error or done, the command ends without creating it.
	before func() (done bool, err error)
	// Later, unless empty, describes the consequences of a change made directly in a database.
	Later string
}

// Commands makes commands on clients and users, which work on a store or on a server.
type Commands struct {
	*command.Env
	places map[*cobra.Command]place // of commands and groups, for completions
}

// NewCommands returns a Commands for commands that run in c.
func NewCommands(c *command.Env) *Commands {
	return &Commands{Env: c, places: map[*cobra.Command]place{}}
}

// ServerUsage is the usage text of --server for commands that can also work on a store.
const ServerUsage = "admin address of a running server (default OAUTH_SERVER, or the store)"

// action is what a command does on a store or server.
type action = func(ctx context.Context, api *adminclient.Client, args []string) error

// Reads adds the flags that select the store or server to a command, and runs do there.
func (c *Commands) Reads(cmd *cobra.Command, do action) *cobra.Command {
	c.add(cmd, &accountFlags{}, do)
	return cmd
}

// Changes is [Commands.Reads] for a command that changes something.
func (c *Commands) Changes(cmd *cobra.Command, do action) *cobra.Command {
	c.addChange(cmd, &accountFlags{}, do)
	return cmd
}

// Creates is [Commands.Changes] for a command that may create the store, unless before ends it.
func (c *Commands) Creates(cmd *cobra.Command, before func() (done bool, err error), do action) *accountFlags {
	f := &accountFlags{creates: true, before: before}
	cmd.Flags().BoolVar(&f.create, "create", false, "create a missing data file without asking")
	return c.addChange(cmd, f, do)
}

func (c *Commands) addChange(cmd *cobra.Command, f *accountFlags, do action) *accountFlags {
	f.AddReason(cmd)
	cmd.Flags().StringVar(&f.confirmed, "confirm", "", "repeat the ID or name, to allow a change that may lock operators out")
	return c.add(cmd, f, do)
}

func (c *Commands) add(cmd *cobra.Command, f *accountFlags, do action) *accountFlags {
	f.Env = c.Env
	f.settings = command.AddSettings(cmd, config.Option.IsStore)
	command.StoreInTopic(cmd)
	f.Add(cmd.Flags(), ServerUsage)
	c.places[cmd] = f
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return unanswered(cmd, args, f.with(cmd.Context(), func(api *adminclient.Client) error { return do(cmd.Context(), api, args) }))
	}
	return f
}

// with runs do on the named server, on the store, or on the server that holds the store's file. It
// reports its choice on standard error.
func (f *accountFlags) with(ctx context.Context, do func(*adminclient.Client) error) error {
	if f.Server != "" {
		return f.onServer("--server", do)
	}
	if f.Server = f.Variable("OAUTH_SERVER"); f.Server != "" {
		return f.onServer("OAUTH_SERVER", do)
	}
	cfg, err := config.LoadStore(f.settings.Sources(f.Environ))
	if err != nil {
		return err
	}
	open := command.WithExisting
	if f.creates {
		if command.IsNew(cfg) {
			if done, err := f.before(); done || err != nil {
				return err
			}
		}
		open = func(ctx context.Context, cfg *config.Config, do func(app.Store) error) error {
			return f.WithNew(ctx, cfg, f.create, do)
		}
	}
	err = open(ctx, cfg, func(store app.Store) error {
		f.Note("using %s directly", command.NameOf(cfg))
		api, err := admin.New(admin.Options{Registry: store, Events: store, Operator: Whoami()})
		if err != nil {
			return err
		}
		client := adminclient.InProcess(api)
		client.Timeout, client.Reason, client.Confirmed = f.Timeout, f.Reason, f.confirmed
		return do(client)
	})
	if errors.Is(err, app.ErrStoreHeld) {
		return f.onHolder(ctx, cfg.Store.Embedded.Path, err, do)
	}
	if err == nil && cfg.Store.MongoDB != nil && f.Later != "" {
		f.Note("%s", f.Later)
	}
	return err
}

// onServer runs do on a server. by is the flag or variable that names it.
func (f *accountFlags) onServer(by string, do func(*adminclient.Client) error) error {
	if name := f.settings.StoreFlag(); name != "" {
		return command.Usagef("%s and --%s cannot be used together: name either a server or a store", by, name)
	}
	api, err := f.Connect()
	if err != nil {
		return err
	}
	f.Note("using the admin API at %s", f.Server)
	return do(api)
}

// onHolder runs do on the server that holds a data file. It returns held if there is no such
// server.
func (f *accountFlags) onHolder(ctx context.Context, dataFile string, held error, do func(*adminclient.Client) error) error {
	api, err := f.Holder(ctx, dataFile, fmt.Errorf("%w, or use its admin API with --server", held))
	if err != nil {
		return err
	}
	return do(api)
}

// Holder returns the admin API of the server that holds a data file. The server's address and a key
// are stored beside the file. An account that can read them could also open the file once the server
// has stopped. It returns held if there is no such server.
func (l *API) Holder(ctx context.Context, dataFile string, held error) (*adminclient.Client, error) {
	access, err := adminlocal.Read(dataFile)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", held, err)
	}
	if l.token == "" && l.clientID == "" { // no flags given: the key is enough
		l.token = access.Token()
	}
	l.Server, l.local = access.URL, &access
	api, err := l.Connect()
	if err != nil {
		return nil, err
	}
	if err := l.Prove(ctx, api, &access); err != nil {
		return nil, fmt.Errorf("%w (%w)", held, err)
	}
	api.Header = http.Header{adminlocal.OperatorHeader: {Whoami()}}
	l.Note("using the admin API at %s, because that server holds %s", access.URL, dataFile)
	return api, nil
}

// Prove returns an error unless the server at the address proves that it has the key in access.
func (l *API) Prove(ctx context.Context, api *adminclient.Client, access *adminlocal.Access) error {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
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
		return fmt.Errorf("another server answers at %s", access.URL)
	}
	if err != nil {
		return fmt.Errorf("its admin address does not answer: %w", err)
	}
	_ = res.Body.Close()
	if !hmac.Equal([]byte(res.Header.Get(adminlocal.ProofHeader)), []byte(access.Proof(challenge))) {
		return fmt.Errorf("another server answers at %s", access.URL)
	}
	return nil
}

// Whoami returns user@host, for the audit trail.
func Whoami() string {
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
