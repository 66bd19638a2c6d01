package accounts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret/username"
)

// NewUser makes the commands on users.
func NewUser(c *connect.Commands) *cobra.Command {
	return command.Group("user", "Create and manage the users who can sign in",
		"  oauth-server user create ada --operator\n  oauth-server user list --prefix ad",
		newUserCreate(c), newUserList(c), newUserShow(c), newUserOperator(c),
		newUserPasswd(c), newUserRevoke(c), newUserUnlock(c), newUserDelete(c), newUserImport(c))
}

func newUserCreate(c *connect.Commands) *cobra.Command {
	var fromStdin bool
	operator := accessFlag{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a user, prompting for the password",
		Example: `  oauth-server user create ada --operator
  echo "$PASSWORD" | oauth-server user create ada --password-stdin`,
		Args: operator.unspaced(command.Takes("NAME"), "operator"),
	}
	fromStdinFlag(cmd, &fromStdin)
	operator.add(cmd.Flags(), "operator", "let the user use the admin API; --operator=read: to read only")
	var spec registry.NewUser
	valid := func() (bool, error) {
		_, err := spec.Validate()
		return false, err
	}
	c.Creates(cmd, valid, func(ctx context.Context, api *adminclient.Client, _ []string) error {
		name := spec.Name
		if canonical, err := username.Canonical(name); err == nil && canonical != name {
			c.Note("note: the user %s is stored as %s, and can sign in with either name", name, canonical)
			name = canonical
		}
		var u registry.User
		if err := api.Do(ctx, http.MethodPost, "/users", registry.NewUser{Name: name, Password: spec.Password, Operator: spec.Operator}, &u); err != nil {
			return explain("user", name, err)
		}
		return c.Answer(u, "created user "+u.Username)
	})
	return first(cmd, func(args []string) (err error) {
		spec.Name, spec.Operator = args[0], operator.level
		spec.Password, err = readPassword(c, fromStdin)
		return err
	})
}

func fromStdinFlag(cmd *cobra.Command, fromStdin *bool) {
	cmd.Flags().BoolVar(fromStdin, "password-stdin", false, "read the password from standard input; one final newline is dropped")
}

// maxPasswordInput is the maximum number of bytes read from standard input. Passwords are shorter.
const maxPasswordInput = 1 << 16

// readPassword reads a password from standard input or prompts for it. A password is never an argument:
// other users could see it, and the shell would keep it in its history.
func readPassword(c *connect.Commands, fromStdin bool) (string, error) {
	if fromStdin {
		text, err := io.ReadAll(io.LimitReader(c.In, maxPasswordInput))
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		text = bytes.TrimSuffix(text, []byte("\n"))
		return string(bytes.TrimSuffix(text, []byte("\r"))), nil
	}
	in, ok := c.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return "", command.Usagef("standard input is not a terminal: give the password with --password-stdin")
	}
	first, err := askPassword(c, in, "Password: ")
	if err != nil {
		return "", err
	}
	second, err := askPassword(c, in, "Again: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", errors.New("the passwords differ")
	}
	return first, nil
}

func askPassword(c *connect.Commands, in *os.File, prompt string) (string, error) {
	_, _ = fmt.Fprint(c.ErrOut, prompt)
	text, err := term.ReadPassword(int(in.Fd()))
	_, _ = fmt.Fprintln(c.ErrOut)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return string(text), nil
}

func newUserList(c *connect.Commands) *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use: "list", Short: "List all users", Args: command.Takes(),
		Example: "  oauth-server user list --prefix ad\n  oauth-server user list -o json",
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only users with this name prefix")
	return c.Reads(cmd, func(ctx context.Context, api *adminclient.Client, _ []string) error {
		users, err := listUsers(ctx, api, prefix)
		if err != nil {
			return err
		}
		return showUsers(c, users)
	})
}

// listUsers returns the users with names that start with prefix, ordered by name.
func listUsers(ctx context.Context, api *adminclient.Client, prefix string) ([]registry.User, error) {
	users, _, err := adminclient.Pages[registry.User](ctx, api, "/users", url.Values{"limit": {pageSize}, "prefix": {prefix}})
	return users, err
}

func showUsers(c *connect.Commands, users []registry.User) error {
	rows := [][]string{{"USERNAME", "CREATED", "OPERATOR"}}
	for _, u := range users {
		if u.Unreadable != "" {
			rows = append(rows, []string{u.Username, "unreadable", "-"})
			c.Note("user %s: %s; repair the record, or delete it with oauth-server user delete '%s'", u.Username, u.Unreadable, u.Username)
			continue
		}
		rows = append(rows, []string{u.Username, command.DateTime(u.CreatedAt), cmp.Or(string(u.Operator), "-")})
	}
	return c.List(users, rows...)
}

func newUserOperator(c *connect.Commands) *cobra.Command {
	cmd := &cobra.Command{
		Use: "operator NAME on|read|off", Short: "Let a user use the admin API, or forbid it", Args: command.Takes("NAME", "on|read|off"),
		Long: `Set what a user may do in the admin API after signing in through an admin client:

  on    read and change limits, clients and users, including passwords
  read  only read them
  off   nothing

The change also applies to existing tokens, immediately and on all instances.`,
		Example: "  oauth-server user operator ada read\n  oauth-server user operator ada off",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{"on", "read", "off"}, cobra.ShellCompDirectiveNoFileComp
			}
			return c.Complete(connect.First(connect.Usernames))(cmd, args, typed)
		},
	}
	levels := map[string]clientcfg.Access{"on": clientcfg.WriteAccess, "read": clientcfg.ReadAccess, "off": clientcfg.NoAccess}
	says := map[string]string{"on": "may now use the admin API", "read": "may now read with the admin API", "off": "may no longer use the admin API"}
	return c.Changes(cmd, func(ctx context.Context, api *adminclient.Client, args []string) error {
		level := args[1]
		access, ok := levels[level]
		if !ok {
			return command.Usagef("user operator: %q is not one of on, read, off", level)
		}
		patch := map[string]any{"operator": access}
		if access == clientcfg.NoAccess {
			patch["operator"] = nil
		}
		var u registry.User
		if err := api.Do(ctx, http.MethodPatch, userPath(args[0]), patch, &u); err != nil {
			return explain("user", args[0], err)
		}
		return c.Answer(map[string]any{"username": u.Username, "operator": access}, "user "+u.Username+" "+says[level])
	})
}

func newUserPasswd(c *connect.Commands) *cobra.Command {
	var fromStdin bool
	cmd := &cobra.Command{
		Use:   "passwd NAME",
		Short: "Change the password of a user, and end all sessions",
		Long: `Change the password of a user. The command prompts for it, or reads it with --password-stdin.
All sessions and tokens of the user end, as with revoke.`,
		Example: `  oauth-server user passwd ada
  echo "$PASSWORD" | oauth-server user passwd ada --password-stdin`,
		Args: command.Takes("NAME"),
	}
	fromStdinFlag(cmd, &fromStdin)
	var password string
	change(c, cmd, "user", func(ctx context.Context, api *adminclient.Client, name string) (any, string, error) {
		var u registry.User
		err := api.Do(ctx, http.MethodPut, userPath(name, "/password"), adminapi.NewPassword{Password: password}, &u)
		return map[string]string{"username": u.Username}, "changed the password of user " + u.Username + ", who must sign in again everywhere", err
	})
	return first(cmd, func([]string) (err error) {
		password, err = readPassword(c, fromStdin)
		return err
	})
}

func newUserUnlock(c *connect.Commands) *cobra.Command {
	cmd := &cobra.Command{
		Use: "unlock NAME", Short: "Forget the wrong passwords that slow down sign-ins of a user", Args: command.Takes("NAME"),
		Long: `Forget the wrong passwords of a user, as a correct one does, so that sign-ins from new addresses
are no longer slowed down. This applies immediately, on all instances.

Attempts already counted against an address stay counted. The user can sign in immediately from
another address, or from the same one after the time in Retry-After.`,
		Example: "  oauth-server user unlock ada\n  oauth-server user unlock ada --reason \"ticket 4711\"",
	}
	return change(c, cmd, "user", func(ctx context.Context, api *adminclient.Client, name string) (any, string, error) {
		var u registry.User
		err := api.Do(ctx, http.MethodPost, userPath(name, "/unlock"), nil, &u)
		return map[string]any{"username": u.Username, "unlocked": true}, "user " + u.Username + " is no longer slowed down by wrong passwords", err
	})
}

func newUserDelete(c *connect.Commands) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a user, with all sessions, tokens and consents", Args: command.Takes("NAME"),
		Example: "  oauth-server user delete ada\n  oauth-server user delete ada --reason \"ticket 4711\"",
	}
	return change(c, cmd, "user", func(ctx context.Context, api *adminclient.Client, name string) (any, string, error) {
		err := api.Do(ctx, http.MethodDelete, userPath(name), nil, nil)
		name = username.Stored(name)
		return map[string]any{"username": name, "deleted": true}, "deleted user " + name, err
	})
}
