package connect

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminclient"
)

// The advice for changes of a client and of a user.
const (
	clientMayBeChanged = "the client may have been changed: check with oauth-server client show '%[1]s';" +
		" a new secret is lost: run client rotate-secret '%[1]s' again, which may end the secret in use, even with --overlap"
	userMayBeChanged = "the user %[1]q may have been changed: it is safe to run the command again"
)

// adviceIfUnanswered is what to do if the store did not answer a change: by command, for the client
// or user in its first argument.
var adviceIfUnanswered = map[string]string{
	"client create": "the client may have been created: check with oauth-server client show '%[1]s';" +
		" its generated secret is lost: get a new one with client rotate-secret '%[1]s'",
	"client update":        clientMayBeChanged,
	"client rotate-secret": clientMayBeChanged,
	"client revoke":        clientMayBeChanged,
	"client delete":        "the client may have been deleted: check with oauth-server client show '%[1]s', and delete it again if it still exists",
	"user create":          "the user may have been created: check with oauth-server user show '%[1]s', and create the user again if it does not exist",
	"user passwd":          userMayBeChanged,
	"user revoke":          userMayBeChanged,
	"user operator":        userMayBeChanged,
	"user delete":          "the user may have been deleted: check with oauth-server user show '%[1]s', and delete the user again if it still exists",
}

// unanswered adds the command's advice to the error of a change that may have been made.
func unanswered(cmd *cobra.Command, args []string, err error) error {
	var p *adminclient.ProblemError
	advice := adviceIfUnanswered[cmd.Parent().Name()+" "+cmd.Name()]
	if advice == "" || len(args) == 0 || !errors.As(err, &p) || !p.Unanswered {
		return err
	}
	return fmt.Errorf("%w; %s", err, fmt.Sprintf(advice, args[0]))
}
