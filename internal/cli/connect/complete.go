package connect

import (
	"context"
	"io"
	"strings"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/registry"

	"github.com/spf13/cobra"
)

// LookUp reads for a completion from the store or server that the command itself would use, within
// [CompleteWithin] and without output. A command that does not choose a store reads from the server
// that its flags or the environment name. On an error, nothing is offered.
func (c *Commands) LookUp(cmd *cobra.Command, read func(ctx context.Context, r *adminclient.Accounts) error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), CompleteWithin)
	defer cancel()
	f := c.flags[cmd]
	if f == nil {
		if api, err := c.completing(cmd).Connect(); err == nil {
			_ = read(ctx, &adminclient.Accounts{Client: api})
		}
		return
	}
	quiet := *c.Env
	quiet.In, quiet.ErrOut = strings.NewReader(""), io.Discard
	f.Env, f.creates, f.Timeout = &quiet, false, CompleteWithin
	_ = f.with(ctx, func(r *adminclient.Accounts) error { return read(ctx, r) })
}

// completing returns API flags for the completions of a command that can also work without a
// server. They select the server named by the command's flags or the environment.
func (c *Commands) completing(cmd *cobra.Command) *API {
	l := &API{Env: c.Env, Timeout: CompleteWithin}
	for name, into := range map[string]*string{
		"server": &l.Server, "issuer": &l.issuer, "token": &l.token, "client-id": &l.clientID, "client-secret": &l.secret,
	} {
		if f := cmd.Flags().Lookup(name); f != nil {
			*into = f.Value.String()
		}
	}
	return l
}

// CompleteClientID completes the ID of a client as the first argument.
func (c *Commands) CompleteClientID(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.LookUp(cmd, func(ctx context.Context, r *adminclient.Accounts) error {
		all, err := r.Clients(ctx, registry.Filter{Prefix: typed})
		for i := range all.Clients {
			out = append(out, all.Clients[i].ID)
		}
		for _, u := range all.Unreadable {
			out = append(out, u.ClientID)
		}
		return err
	})
	return command.Beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
}

// mostCompleted is the maximum number of usernames offered.
const mostCompleted = 100

// CompleteUsername completes the name of a user as the first argument.
func (c *Commands) CompleteUsername(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.LookUp(cmd, func(ctx context.Context, r *adminclient.Accounts) error {
		users, err := r.Users(ctx, typed, "", mostCompleted)
		for _, u := range users {
			out = append(out, u.Username)
		}
		return err
	})
	return command.Beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
}

// CompleteNamedUser completes the name of a user as the value of a flag.
func (c *Commands) CompleteNamedUser(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.CompleteUsername(cmd, nil, typed)
}

// CompleteLabel completes a label with the labels that clients have.
func (c *Commands) CompleteLabel(cmd *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	c.LookUp(cmd, func(ctx context.Context, r *adminclient.Accounts) error {
		all, err := r.Clients(ctx, registry.Filter{})
		for i := range all.Clients {
			out = append(out, all.Clients[i].Labels.Pairs()...)
		}
		return err
	})
	return command.Beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
}

// CompleteLabelName completes a label's name with the labels of the client in the first argument.
func (c *Commands) CompleteLabelName(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.LookUp(cmd, func(ctx context.Context, r *adminclient.Accounts) error {
		client, _, err := r.FindClient(ctx, args[0])
		for name := range client.Labels.Values() {
			out = append(out, name)
		}
		return err
	})
	return command.Beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
}
