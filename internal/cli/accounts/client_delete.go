package accounts

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
)

func newClientDelete(c *connect.Commands) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Delete a client", Args: command.Takes("ID"),
		Long: `Delete a client. It gets no more tokens, and its existing tokens become invalid.

Limits and bans that you set for it stay, and apply again if you register a client with the same
ID. The command shows how to remove them.`,
		Example: "  oauth-server client delete shop\n  oauth-server client delete shop --reason \"ticket 4711\"",
	}
	return change(c, cmd, "client", func(ctx context.Context, api *adminclient.Client, id string) (any, string, error) {
		var left registry.Limits
		_, _ = api.Get(ctx, clientPath(id, "/limits"), nil, &left) // on an error, the limits are not mentioned
		if err := api.Do(ctx, http.MethodDelete, clientPath(id), nil, nil); err != nil {
			return nil, "", err
		}
		if removals := removals(id, &left); len(removals) > 0 {
			c.Note("Limits or bans of client %s stay, and apply again to a client with this ID. Remove them with:\n  %s",
				id, strings.Join(removals, "\n  "))
		}
		return map[string]any{"client_id": id, "deleted": true}, "deleted client " + id, nil
	})
}

// removals returns the commands that remove the limits and bans of a client.
func removals(id string, l *registry.Limits) (commands []string) {
	if l.Policy {
		commands = append(commands, "oauth-server limits unset "+shellWord(id))
	}
	for _, name := range l.Users {
		commands = append(commands, fmt.Sprintf("oauth-server limits unset %s --for-user %s", shellWord(id), shellWord(name)))
	}
	if more := l.Overrides - len(l.Users); more > 0 && len(l.Users) > 0 {
		commands = append(commands, fmt.Sprintf("... and %d more users; list them with: oauth-server limits get %s", more, shellWord(id)))
	}
	if l.Candidate {
		commands = append(commands, "oauth-server limits unset "+shellWord(id)+" --candidate")
	}
	for _, name := range l.Banned {
		unban := "oauth-server limits unban " + shellWord(id) + " --forget"
		if name != "" {
			unban += " --user " + shellWord(name)
		}
		commands = append(commands, unban)
	}
	if l.MoreBanned {
		commands = append(commands, "... and more bans; list them with: oauth-server limits bans "+shellWord(id)+" --ended")
	}
	return commands
}

// shellWord quotes a text as one shell word.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
