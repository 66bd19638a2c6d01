package connect

import (
	"context"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
)

// completeWithin is the timeout of a completion.
const completeWithin = 2 * time.Second

// place finds the server or store of a command.
type place interface {
	with(ctx context.Context, do func(*adminclient.Client) error) error
	quiet() // ends its output and its questions
}

func (l *API) with(_ context.Context, do func(*adminclient.Client) error) error {
	api, err := l.Connect()
	if err != nil {
		return err
	}
	return do(api)
}

func (l *API) quiet() {
	quiet := *l.Env
	quiet.In, quiet.ErrOut = strings.NewReader(""), io.Discard
	l.Env, l.Timeout = &quiet, completeWithin
}

func (f *accountFlags) quiet() {
	f.API.quiet()
	f.creates = false
}

// Uses says that the commands of a group use the server of these flags, for their completions.
func (c *Commands) Uses(group *cobra.Command, l *API) { c.places[group] = l }

// Finder returns the completions of the text typed so far.
type Finder = func(ctx context.Context, api *adminclient.Client, args []string, typed string) ([]string, error)

// Complete completes with what find reads from the store or server that the command itself would
// use, within [completeWithin] and without output. On an error it offers nothing.
func (c *Commands) Complete(find Finder) command.Completion {
	return func(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		for at := cmd; at != nil; at = at.Parent() {
			if p := c.places[at]; p != nil {
				p.quiet()
				_ = p.with(ctx, func(api *adminclient.Client) (err error) {
					out, err = find(ctx, api, args, typed)
					return err
				})
				break
			}
		}
		return command.Beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// Named finds the names in a field of the items of a list, at most a page of them.
func Named(path, field string) Finder {
	return func(ctx context.Context, api *adminclient.Client, _ []string, typed string) (names []string, err error) {
		query := url.Values{}
		if typed != "" { // some lists accept no prefix
			query.Set("prefix", typed)
		}
		items, _, err := adminclient.PageOf[map[string]any](ctx, api, path, query)
		for _, item := range items {
			if name, is := item[field].(string); is {
				names = append(names, name)
			}
		}
		return names, err
	}
}

// First is find for the first argument of a command.
func First(find Finder) Finder {
	return func(ctx context.Context, api *adminclient.Client, args []string, typed string) ([]string, error) {
		if len(args) > 0 {
			return nil, nil
		}
		return find(ctx, api, args, typed)
	}
}

// The finders of users and of clients that may send requests.
var (
	Usernames = Named("/users", "username")
	ClientIDs = Named("/clients", "client_id")
)

// Registered finds the registered clients, readable or not. At a gateway, ClientIDs finds more.
func Registered(ctx context.Context, api *adminclient.Client, _ []string, typed string) (ids []string, err error) {
	clients, page, err := adminclient.PageOf[adminapi.Client](ctx, api, "/clients", url.Values{"prefix": {typed}})
	for i := range clients {
		if clients[i].IssuedAt != 0 {
			ids = append(ids, clients[i].ClientID)
		}
	}
	var unreadable []registry.Unreadable
	_ = page.Decode("unreadable", &unreadable) // on an error, they are not offered
	for _, u := range unreadable {
		ids = append(ids, u.ClientID)
	}
	return ids, err
}

// ofUser finds a field of the items in a list of the user in the first argument, and adds other values.
func ofUser(list, field string, others ...string) Finder {
	return func(ctx context.Context, api *adminclient.Client, args []string, _ string) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		names, err := Named("/users/"+adminapi.Escape(args[0])+"/"+list, field)(ctx, api, nil, "")
		return append(names, others...), err
	}
}

// All is the value of --session and --family that means every one.
const All = "all"

func labelPairs(ctx context.Context, api *adminclient.Client, _ []string, _ string) (pairs []string, err error) {
	clients, _, err := adminclient.Pages[adminapi.Client](ctx, api, "/clients", url.Values{"limit": {"1000"}})
	for i := range clients {
		pairs = append(pairs, clients[i].Labels.Pairs()...)
	}
	return pairs, err
}

func labelNames(ctx context.Context, api *adminclient.Client, args []string, _ string) (names []string, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	var client adminapi.Registration
	_, err = api.Get(ctx, "/clients/"+adminapi.Escape(args[0]), nil, &client)
	for name := range client.Labels.Values() {
		names = append(names, name)
	}
	return names, err
}

// Completions completes the values of flags with these names.
func (c *Commands) Completions() map[string]command.Completion {
	return map[string]command.Completion{
		"label": c.Complete(labelPairs), "remove-label": c.Complete(labelNames),
		"session": c.Complete(ofUser("sessions", "id", All)), "family": c.Complete(ofUser("families", "id", All)),
		"consent": c.Complete(ofUser("consents", "client_id")),
	}
}
