package connect

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
)

// CompleteWithin is the timeout of a completion.
const CompleteWithin = 2 * time.Second

// find returns what can follow the text typed so far.
type find = func(ctx context.Context, r *adminclient.Accounts, args []string, typed string) ([]string, error)

// Complete completes with what find reads from the store or server that the command itself would
// use, within [CompleteWithin] and without output.
func (c *Commands) Complete(find find) command.Completion {
	return func(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), CompleteWithin)
		defer cancel()
		if f := c.flags[cmd]; f != nil {
			quiet := *c.Env
			quiet.In, quiet.ErrOut = strings.NewReader(""), io.Discard
			f.Env, f.creates, f.Timeout = &quiet, false, CompleteWithin
			_ = f.with(ctx, func(r *adminclient.Accounts) (err error) { // on an error, nothing is offered
				out, err = find(ctx, r, args, typed)
				return err
			})
		}
		return command.Beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// ofFirst is a find about the client or user in the first argument.
func ofFirst(find func(ctx context.Context, r *adminclient.Accounts, name string) ([]string, error)) find {
	return func(ctx context.Context, r *adminclient.Accounts, args []string, _ string) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		return find(ctx, r, args[0])
	}
}

// ClientIDs finds the first argument of a command on a client.
func ClientIDs(ctx context.Context, r *adminclient.Accounts, args []string, typed string) (ids []string, err error) {
	if len(args) > 0 {
		return nil, nil
	}
	all, err := r.Clients(ctx, registry.Filter{Prefix: typed})
	for i := range all.Clients {
		ids = append(ids, all.Clients[i].ID)
	}
	for _, u := range all.Unreadable {
		ids = append(ids, u.ClientID)
	}
	return ids, err
}

// mostCompleted is the maximum number of usernames offered.
const mostCompleted = 100

// Usernames finds the first argument of a command on a user.
func Usernames(ctx context.Context, r *adminclient.Accounts, args []string, typed string) (names []string, err error) {
	if len(args) > 0 {
		return nil, nil
	}
	users, err := r.Users(ctx, typed, "", mostCompleted)
	for _, u := range users {
		names = append(names, u.Username)
	}
	return names, err
}

// Completions completes the values of flags with these names.
func (c *Commands) Completions() map[string]command.Completion {
	return map[string]command.Completion{
		"label": c.Complete(func(ctx context.Context, r *adminclient.Accounts, _ []string, _ string) (pairs []string, err error) {
			all, err := r.Clients(ctx, registry.Filter{})
			for i := range all.Clients {
				pairs = append(pairs, all.Clients[i].Labels.Pairs()...)
			}
			return pairs, err
		}),
		"remove-label": c.Complete(ofFirst(func(ctx context.Context, r *adminclient.Accounts, id string) (names []string, err error) {
			client, _, err := r.FindClient(ctx, id)
			for name := range client.Labels.Values() {
				names = append(names, name)
			}
			return names, err
		})),
		"session": c.Complete(ofFirst(func(ctx context.Context, r *adminclient.Accounts, user string) ([]string, error) {
			ids := []string{All}
			sessions, err := r.Sessions(ctx, user)
			for _, s := range sessions {
				ids = append(ids, s.ID)
			}
			return ids, err
		})),
		"family": c.Complete(ofFirst(func(ctx context.Context, r *adminclient.Accounts, user string) ([]string, error) {
			ids := []string{All}
			families, err := r.Families(ctx, user)
			for i := range families {
				ids = append(ids, families[i].ID)
			}
			return ids, err
		})),
		"consent": c.Complete(ofFirst(func(ctx context.Context, r *adminclient.Accounts, user string) (ids []string, err error) {
			consents, err := r.Consents(ctx, user)
			for _, agreed := range consents {
				ids = append(ids, agreed.ClientID)
			}
			return ids, err
		})),
	}
}

// All is the value of --session and --family that means every one.
const All = "all"
