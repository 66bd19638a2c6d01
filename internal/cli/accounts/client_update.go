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

// clientEdit holds the flags of client create and client update.
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
	creates                       bool // client create
}

// add adds the flags of a registration. The texts complete the usage of some of them.
func (e *clientEdit) add(flags *pflag.FlagSet, name, grant, redirect, audience string) {
	flags.StringVar(&e.name, "name", "", "name on the consent page"+name)
	flags.StringSliceVar(&e.kinds, "grant", nil, "`GRANT` that the client may use; repeatable"+grant)
	flags.StringArrayVar(&e.redirects, "redirect-uri", nil, "redirect `URI`"+redirect+"; repeatable")
	flags.StringArrayVar(&e.scopes, "scope", nil, "`SCOPE` that the client may request; repeatable")
	flags.StringArrayVar(&e.audience, "audience", nil, "`AUD` claim of its tokens; repeatable"+audience)
	flags.BoolVar(&e.withoutPKCE, "without-pkce", false, "allow authorization requests without PKCE (RFC 9700 advises against it)")
	flags.BoolVar(&e.resourceServer, "resource-server", false, "let it introspect all access tokens, not only its own")
	flags.BoolVar(&e.firstParty, "first-party", false, "your own app: do not ask its users for consent")
	e.labels.add(flags)
	e.admin.add(flags, "admin", "let it get tokens for the admin API; --admin=read: to read only")
	e.given = flags.Changed
}

func newClientUpdate(c *connect.Commands) *cobra.Command {
	e := &clientEdit{}
	cmd := &cobra.Command{
		Use: "update ID", Short: "Change the registration of a client", Args: e.admin.unspaced(command.Takes("ID"), "admin"),
		Long: `Change the registration of a client. Fields without a flag stay as they are.

A repeatable flag replaces the whole list. --add-… and --remove-… change single items, and --label
sets one label. To change the secret, use rotate-secret.`,
		Example: `  oauth-server client update shop --add-scope orders:write --name "The shop"
  oauth-server client update shop --label team=payments --remove-label region
  oauth-server client update ops --admin`,
	}
	flags := cmd.Flags()
	e.add(flags, "; empty: the ID", "", "", "; empty: the issuer")
	flags.StringArrayVar(&e.addRedirects, "add-redirect-uri", nil, "redirect `URI` to add; repeatable")
	flags.StringArrayVar(&e.removeRedirects, "remove-redirect-uri", nil, "redirect `URI` to remove; repeatable")
	flags.StringArrayVar(&e.addScopes, "add-scope", nil, "`SCOPE` to add; repeatable")
	flags.StringArrayVar(&e.removeScopes, "remove-scope", nil, "`SCOPE` to remove; repeatable")
	e.labels.addRemove(flags)
	var edits []string // the flags so far
	flags.VisitAll(func(f *pflag.Flag) { edits = append(edits, f.Name) })
	c.Changes(cmd, func(ctx context.Context, api *adminclient.Client, args []string) error {
		cl, err := changeClient(ctx, c, api, args[0], e.apply)
		if err != nil {
			return explain("client", args[0], err)
		}
		e.admin.warn(c.Env, &cl)
		return showClient(ctx, c, api, cl.ID)
	})
	return first(cmd, func([]string) error {
		if !slices.ContainsFunc(edits, e.given) {
			return command.Usagef("client update: nothing to change: give a flag such as --add-scope (see --help)")
		}
		return e.labels.check()
	})
}

// apply changes the fields that the flags name.
func (e *clientEdit) apply(cl *clientcfg.Client) {
	if e.given("name") {
		cl.Name = e.name
	}
	if e.given("grant") {
		cl.Grants = grantsOf(e.kinds)
	}
	replace := func(flag string, list *[]string, by, add, remove []string) {
		if e.given(flag) {
			*list = slices.DeleteFunc(slices.Clone(by), func(s string) bool { return s == "" && !e.creates }) // an empty item empties a list
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
	e.admin.apply(cl)
}
