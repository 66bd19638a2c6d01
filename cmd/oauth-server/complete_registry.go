package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/registry"
)

// lookUp reads for a completion from the store or server that the command itself would use, within
// [completeWithin] and without output. A command that does not choose a store reads from the server
// that its flags or the environment name. On an error, nothing is offered.
func (c *registryCommands) lookUp(cmd *cobra.Command, read func(ctx context.Context, r *adminclient.Accounts) error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	f := c.flags[cmd]
	if f == nil {
		if api, err := c.completing(cmd).connect(); err == nil {
			_ = read(ctx, &adminclient.Accounts{Client: api})
		}
		return
	}
	quiet := *c.cli
	quiet.in, quiet.errOut = strings.NewReader(""), io.Discard
	f.cli, f.creates, f.timeout = &quiet, false, completeWithin
	_ = f.with(ctx, func(r *adminclient.Accounts) error { return read(ctx, r) })
}

// completing returns API flags for the completions of a command that can also work without a
// server. They select the server named by the command's flags or the environment.
func (c *registryCommands) completing(cmd *cobra.Command) *apiFlags {
	l := &apiFlags{cli: c.cli, timeout: completeWithin}
	for name, into := range map[string]*string{
		"server": &l.server, "issuer": &l.issuer, "token": &l.token, "client-id": &l.clientID, "client-secret": &l.secret,
	} {
		if f := cmd.Flags().Lookup(name); f != nil {
			*into = f.Value.String()
		}
	}
	return l
}

// completeClientID completes the ID of a client as the first argument.
func (c *registryCommands) completeClientID(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.lookUp(cmd, func(ctx context.Context, r *adminclient.Accounts) error {
		all, err := r.Clients(ctx, registry.Filter{Prefix: typed})
		for i := range all.Clients {
			out = append(out, all.Clients[i].ID)
		}
		for _, u := range all.Unreadable {
			out = append(out, u.ClientID)
		}
		return err
	})
	return beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
}

// mostCompleted is the maximum number of usernames offered.
const mostCompleted = 100

// completeUsername completes the name of a user as the first argument.
func (c *registryCommands) completeUsername(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.lookUp(cmd, func(ctx context.Context, r *adminclient.Accounts) error {
		users, err := r.Users(ctx, typed, "", mostCompleted)
		for _, u := range users {
			out = append(out, u.Username)
		}
		return err
	})
	return beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
}

// completeNamedUser completes the name of a user as the value of a flag.
func (c *registryCommands) completeNamedUser(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return c.completeUsername(cmd, nil, typed)
}

// completeLabel completes a label with the labels that clients have.
func (c *registryCommands) completeLabel(cmd *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	c.lookUp(cmd, func(ctx context.Context, r *adminclient.Accounts) error {
		all, err := r.Clients(ctx, registry.Filter{})
		for i := range all.Clients {
			out = append(out, all.Clients[i].Labels.Pairs()...)
		}
		return err
	})
	return beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
}

// completeLabelName completes a label's name with the labels of the client in the first argument.
func (c *registryCommands) completeLabelName(cmd *cobra.Command, args []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.lookUp(cmd, func(ctx context.Context, r *adminclient.Accounts) error {
		client, _, err := r.FindClient(ctx, args[0])
		for name := range client.Labels.Values() {
			out = append(out, name)
		}
		return err
	})
	return beginning(out, typed), cobra.ShellCompDirectiveNoFileComp
}
