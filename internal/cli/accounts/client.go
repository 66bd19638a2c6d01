package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/clientcfg"
)

// NewClient makes the commands on clients.
func NewClient(c *connect.Commands) *cobra.Command {
	return command.Group("client", "Register and manage OAuth clients",
		"  oauth-server client create shop --grant client_credentials\n  oauth-server client list --label team=payments",
		newClientCreate(c), newClientList(c), newClientShow(c), newClientUpdate(c), newClientRotate(c),
		newClientRevoke(c), newClientDelete(c), newClientImport(c))
}

// credentials are shown only once, when they are created.
type credentials struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"`
	// FormerUntil is when the previous secret stops being valid.
	FormerUntil time.Time `json:"former_secret_valid_until,omitzero"`
}

func newClientCreate(c *connect.Commands) *cobra.Command {
	var spec clientcfg.Client
	e, given := &clientEdit{creates: true}, &givenSecret{}
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Register a client and show its secret once",
		Example: `  oauth-server client create shop --grant client_credentials --scope orders:read
  oauth-server client create web --public --redirect-uri http://127.0.0.1/callback
  oauth-server client create ops --admin=read
  oauth-server client create desk --admin --public --redirect-uri http://127.0.0.1/callback`,
		Args: e.admin.unspaced(command.Takes("ID"), "admin"),
	}
	flags := cmd.Flags()
	e.add(flags, " (default the ID)", " (default depends on --redirect-uri)", ", matched exactly except for a loopback port", " (default the issuer)")
	flags.BoolVar(&spec.Public, "public", false, "a client without a secret, such as a native or browser app")
	given.add(flags)
	valid := func() (bool, error) { return false, registry.ValidateClient(spec) }
	f := c.Creates(cmd, valid, func(ctx context.Context, api *adminclient.Client, _ []string) error {
		made, secret, err := createClient(ctx, c, api, spec)
		if already, err := given.created(ctx, api, spec.ID, err); err != nil {
			return explain("client", spec.ID, err)
		} else if already {
			return c.Answer(credentials{ClientID: spec.ID}, "client "+spec.ID+" has this secret already; nothing is changed")
		}
		e.admin.warn(c.Env, &made)
		return showCredentials(c, credentials{ClientID: made.ID, ClientSecret: secret})
	})
	f.Later = "Running servers learn about the client within two seconds. Until then they answer invalid_client."
	return first(cmd, func(args []string) error {
		spec.ID = args[0]
		err := errors.Join(e.labels.check(), e.admin.check(e.scopes))
		e.apply(&spec)
		return errors.Join(err, given.apply(&spec))
	})
}

// first makes a command check its flags before it looks for the store.
func first(cmd *cobra.Command, check func(args []string) error) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(args); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

// change adds to a command that it changes the client or user in its first argument and shows the
// result: for a script, and as a line for a person.
func change(c *connect.Commands, cmd *cobra.Command, kind string,
	do func(ctx context.Context, api *adminclient.Client, name string) (result any, line string, err error),
) *cobra.Command {
	return c.Changes(cmd, func(ctx context.Context, api *adminclient.Client, args []string) error {
		result, line, err := do(ctx, api, args[0])
		if err != nil {
			return explain(kind, args[0], err)
		}
		return c.Answer(result, line)
	})
}

func grantsOf(kinds []string) []clientcfg.Grant {
	var out []clientcfg.Grant
	for _, k := range kinds {
		if g := clientcfg.Grant(k); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// showCredentials writes the credentials. Its error says what to do without the secret.
func showCredentials(c *connect.Commands, cr credentials) error {
	err := writeCredentials(c, cr)
	if err != nil && cr.ClientSecret != "" {
		err = fmt.Errorf("%w; the secret of %s is lost: create another one with client rotate-secret", err, cr.ClientID)
	}
	return err
}

func writeCredentials(c *connect.Commands, cr credentials) error {
	if c.Output == command.OutputJSON {
		return c.JSON(cr)
	}
	if cr.ClientSecret == "" {
		return c.Table([]string{"client_id", cr.ClientID})
	}
	rows := [][]string{{"client_id", cr.ClientID}, {"client_secret", cr.ClientSecret}}
	if !cr.FormerUntil.IsZero() {
		rows = append(rows, []string{"former_secret_valid_until", command.DateTime(cr.FormerUntil)})
	}
	if err := c.Table(rows...); err != nil {
		return err
	}
	c.Note("Save the secret now: it is shown only once. Only its hash is stored.")
	return nil
}

func newClientList(c *connect.Commands) *cobra.Command {
	var prefix, grant string
	var labels []string
	cmd := &cobra.Command{
		Use: "list", Short: "List the clients", Args: command.Takes(),
		Example: "  oauth-server client list --label team=payments --label region\n  oauth-server client list --grant password -o json",
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only clients with this ID prefix")
	cmd.Flags().StringVar(&grant, "grant", "", "only clients that may use this grant")
	selectorFlag(cmd.Flags(), &labels)
	c.Reads(cmd, func(ctx context.Context, api *adminclient.Client, _ []string) error {
		clients, unreadable, err := listClients(ctx, api, url.Values{"prefix": {prefix}, "grant_type": {grant}, "label": labels})
		if err != nil {
			return err
		}
		listed := []any{}
		rows := [][]string{{"CLIENT ID", "KIND", "GRANTS", "SCOPES", "CREATED", "LABELS"}}
		for i := range clients {
			cl := &clients[i]
			listed = append(listed, cl)
			rows = append(rows, []string{
				cl.ID, kindOf(cl), command.OrDash(command.Names(cl.Grants)), command.OrDash(cl.Scopes), command.DateTime(cl.CreatedAt), command.OrDash(cl.Labels.Pairs()),
			})
		}
		for _, u := range unreadable {
			listed = append(listed, u)
			rows = append(rows, []string{u.ClientID, "unreadable", "-", "-", "-", "-"})
		}
		if len(unreadable) > 0 {
			c.Note("Unreadable clients are not served. See why with client show ID, then repair the record or delete it with client delete ID.")
		}
		return c.List(listed, rows...)
	})
	return first(cmd, func([]string) error {
		if grants := command.Names(clientcfg.Grants()); cmd.Flags().Changed("grant") && !slices.Contains(grants, grant) {
			return command.Usagef("--grant: %q is not one of %s", grant, strings.Join(grants, ", "))
		}
		return checkSelectors(labels)
	})
}

// listClients returns the clients that the query selects, ordered by ID, and the unreadable ones, which
// only the prefix selects.
func listClients(ctx context.Context, api *adminclient.Client, query url.Values) (clients []clientcfg.Client, unreadable []registry.Unreadable, err error) {
	query.Set("limit", pageSize)
	docs, last, err := adminclient.Pages[adminapi.Client](ctx, api, "/clients", query)
	for i := range docs {
		if doc := &docs[i]; doc.IssuedAt != 0 || doc.Meta.Version != 0 { // not of the server behind a gateway
			clients = append(clients, stored(&doc.Registration))
		}
	}
	return clients, unreadable, errors.Join(err, last.Decode("unreadable", &unreadable))
}

func newClientShow(c *connect.Commands) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a client, and when its secrets were last used", Args: command.Takes("ID"),
		Example: "  oauth-server client show shop\n  oauth-server client show shop -o json",
	}
	return c.Reads(cmd, func(ctx context.Context, api *adminclient.Client, args []string) error {
		return showClient(ctx, c, api, args[0])
	})
}

// shownClient is a client with its valid secrets, newest first.
type shownClient struct {
	clientcfg.Client
	Secrets []registry.Secret `json:"secrets,omitempty"`
}

func showClient(ctx context.Context, c *connect.Commands, api *adminclient.Client, id string) error {
	doc, _, err := readClient(ctx, api, id)
	if err != nil {
		return explain("client", id, err)
	}
	cl := stored(&doc)
	rows := [][]string{
		{"client_id", cl.ID},
		{"name", cl.DisplayName()},
		{"kind", kindOf(&cl)},
		{"grants", command.OrDash(command.Names(cl.Grants))},
		{"redirect_uris", command.OrDash(cl.RedirectURIs)},
		{"scopes", command.OrDash(cl.Scopes)},
		{"audience", command.OrDash(cl.Audience)},
		{"first_party", map[bool]string{true: "yes: no consent page", false: "no"}[cl.FirstParty]},
		{"pkce", map[bool]string{true: "required", false: "optional"}[cl.NeedsPKCE()]},
		{"labels", command.OrDash(cl.Labels.Pairs())},
		{"created", command.DateTime(cl.CreatedAt)},
	}
	for _, s := range doc.Secrets { // the times of use are accurate to a minute
		if s.Current {
			rows = append(rows, []string{"secret_used", command.DateTime(s.Used)})
		} else {
			rows = append(rows, []string{"former_secret_until", command.DateTime(s.Until)}, []string{"former_secret_used", command.DateTime(s.Used)})
		}
	}
	return c.List(shownClient{cl, doc.Secrets}, rows...)
}

func newClientRotate(c *connect.Commands) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate-secret ID", Short: "Give a client a new secret and show it once", Args: command.Takes("ID"),
		Long: `Give a client a new secret and show it once.

The old secret stops working immediately. With --overlap both work for a while, so you can
deploy the new one without an interruption; client show tells when each was last used, and
--end-former ends the old one early.

Tokens issued under the old secret stay valid. If the old secret may have leaked, add --revoke.`,
		Example: `  oauth-server client rotate-secret shop --overlap 24h
  oauth-server client rotate-secret shop --end-former`,
	}
	var rotation registry.NewSecret
	var end bool
	cmd.Flags().DurationVar((*time.Duration)(&rotation.Overlap), "overlap", 0, "how long the old secret still works, such as 24h; at most 720h")
	cmd.Flags().BoolVar(&rotation.Revoke, "revoke", false, "also revoke all tokens and codes issued to the client so far")
	cmd.Flags().BoolVar(&end, "end-former", false, "end the old secret now, and make no new one")
	c.Changes(cmd, func(ctx context.Context, api *adminclient.Client, args []string) error {
		if end {
			return explain("client", args[0], endFormer(ctx, c, api, args[0]))
		}
		var out adminapi.Registered
		if err := api.Do(ctx, http.MethodPost, clientPath(args[0], "/secrets"), rotation, &out); err != nil {
			return explain("client", args[0], err)
		}
		cl := stored(&out.Registration)
		return showCredentials(c, credentials{ClientID: args[0], ClientSecret: out.Secret, FormerUntil: cl.Former.Until})
	})
	return first(cmd, func([]string) error {
		if end && (rotation.Revoke || rotation.Overlap != 0) {
			return command.Usagef("--end-former makes no new secret: leave out --overlap and --revoke")
		}
		return nil
	})
}

// endFormer ends the former secret of a client, if it is still valid.
func endFormer(ctx context.Context, c *connect.Commands, api *adminclient.Client, id string) error {
	doc, _, err := readClient(ctx, api, id)
	if err != nil {
		return err
	}
	for _, s := range doc.Secrets {
		if s.Current {
			continue
		}
		if err := api.Do(ctx, http.MethodDelete, clientPath(id, "/secrets/", adminapi.Escape(s.ID)), nil, nil); err != nil {
			return err
		}
		return c.Answer(map[string]any{"client_id": id, "secret": s.ID, "retired": true}, "ended the old secret of client "+id)
	}
	return fmt.Errorf("client %q has no old secret that still works", id)
}

func newClientRevoke(c *connect.Commands) *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke all tokens and codes issued to a client so far", Args: command.Takes("ID"),
		Long: `Revoke all tokens and codes issued to a client so far, including those of its users. Tokens issued
afterwards are valid.

All instances apply this within two seconds. Introspection then reports the tokens as inactive.
A resource server that only verifies signatures accepts them until they expire.

The client's secret still works. To replace it too, use rotate-secret --revoke.`,
		Example: "  oauth-server client revoke shop\n  oauth-server client revoke shop --reason \"stolen laptop\"",
	}
	return change(c, cmd, "client", func(ctx context.Context, api *adminclient.Client, id string) (any, string, error) {
		err := api.Do(ctx, http.MethodPost, clientPath(id, "/revoke"), nil, nil)
		return credentials{ClientID: id}, fmt.Sprintf("revoked all tokens of client %s; new ones are valid", id), err
	})
}

func kindOf(cl *clientcfg.Client) string {
	switch {
	case cl.Public:
		return "public"
	case cl.ResourceServer:
		return "resource server"
	}
	return "confidential"
}
