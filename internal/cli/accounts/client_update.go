package accounts

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/clientcfg"
)

// clientEdit holds the flags of client update.
type clientEdit struct {
	name                          string
	kinds                         []string
	redirects, scopes, audience   []string
	addScopes, removeScopes       []string
	addRedirects, removeRedirects []string
	withoutPKCE, resourceServer   bool
	firstParty                    bool
	labels                        labelFlags
	admin                         accessFlag
	given                         func(name string) bool
}

func newClientUpdate(c *connect.Commands) *cobra.Command {
	e := &clientEdit{}
	cmd := &cobra.Command{
		Use: "update ID", Short: "Change the registration of a client", Args: e.admin.unspaced(command.Takes("ID"), "admin"),
		Long: `Change the registration of a client. What no flag names stays as it is. A repeatable
flag replaces the whole list; --add-… and --remove-… change single items of it. --label sets one
label and leaves the others. Secrets do not change: see rotate-secret.`,
		Example: `  oauth-server client update shop --add-scope orders:write --name "The shop"
  oauth-server client update shop --label team=payments --remove-label region
  oauth-server client update ops --admin`,
	}
	flags := cmd.Flags()
	flags.StringVar(&e.name, "name", "", "name on the consent page; empty for the ID")
	flags.StringSliceVar(&e.kinds, "grant", nil, "`TYPE` of grant that it may use; repeatable")
	flags.StringArrayVar(&e.redirects, "redirect-uri", nil, "redirect `URI`; repeatable")
	flags.StringArrayVar(&e.addRedirects, "add-redirect-uri", nil, "one more redirect `URI`; repeatable")
	flags.StringArrayVar(&e.removeRedirects, "remove-redirect-uri", nil, "redirect `URI` to remove; repeatable")
	flags.StringArrayVar(&e.scopes, "scope", nil, "`SCOPE` that it may request; repeatable")
	flags.StringArrayVar(&e.addScopes, "add-scope", nil, "one more `SCOPE`; repeatable")
	flags.StringArrayVar(&e.removeScopes, "remove-scope", nil, "`SCOPE` to remove; repeatable")
	flags.StringArrayVar(&e.audience, "audience", nil, "`AUD` claim of the tokens; repeatable, empty for the issuer")
	flags.BoolVar(&e.withoutPKCE, "without-pkce", false, "accept requests without PKCE (not advised: RFC 9700)")
	flags.BoolVar(&e.resourceServer, "resource-server", false, "the client may introspect all access tokens")
	flags.BoolVar(&e.firstParty, "first-party", false, "the client is your own: its users are not asked for their consent")
	e.labels.add(flags)
	e.labels.addRemove(flags)
	e.admin.add(flags, "admin", "an admin client, or with --admin=read one that may only read")
	e.given = flags.Changed
	var edits []string // the flags so far
	flags.VisitAll(func(f *pflag.Flag) { edits = append(edits, f.Name) })
	c.Changes(cmd, func(ctx context.Context, r *adminclient.Accounts, args []string) error {
		cl, err := r.ChangeClient(ctx, args[0], e.apply)
		if err != nil {
			return clientError(args[0], err)
		}
		e.admin.warn(c.Env, &cl)
		return showClient(ctx, c, r, cl.ID)
	})
	return first(cmd, func([]string) error {
		if !slices.ContainsFunc(edits, e.given) {
			return command.Usagef("client update: nothing to change: give a flag such as --add-scope; see --help")
		}
		return e.labels.check()
	})
}

// apply changes the fields that the flags name.
func (e *clientEdit) apply(cl *clientcfg.Client) error {
	if e.given("name") {
		cl.Name = e.name
	}
	if e.given("grant") {
		cl.Grants = grantsOf(e.kinds)
	}
	replace := func(flag string, list *[]string, by, add, remove []string) {
		if e.given(flag) {
			*list = slices.DeleteFunc(slices.Clone(by), func(s string) bool { return s == "" })
		}
		for _, s := range add {
			if !slices.Contains(*list, s) {
				*list = append(*list, s)
			}
		}
		*list = slices.DeleteFunc(*list, func(s string) bool { return slices.Contains(remove, s) })
	}
	replace("redirect-uri", &cl.RedirectURIs, e.redirects, e.addRedirects, e.removeRedirects)
	replace("scope", &cl.Scopes, e.scopes, e.addScopes, e.removeScopes)
	replace("audience", &cl.Audience, e.audience, nil, nil)
	if e.given("without-pkce") {
		cl.WithoutPKCE = e.withoutPKCE
	}
	if e.given("resource-server") {
		cl.ResourceServer = e.resourceServer
	}
	if e.given("first-party") {
		cl.FirstParty = e.firstParty
	}
	e.labels.apply(cl)
	e.admin.change(cl)
	return nil
}
