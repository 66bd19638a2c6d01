package connect

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminclient"
)

// The advice for changes of a client and of a user.
const (
	clientMayBeChanged = "the client may have been changed: look at oauth-server client show '%[1]s';" +
		" a new secret is lost: client rotate-secret '%[1]s' once more, which may end the secret that is in use, also with --overlap"
	userMayBeChanged = "the user %[1]q may have been changed: run the command again, which does no harm if so"
)

// adviceIfUnanswered is what to do if the store did not answer a change: by command, for the client
// or user in its first argument.
var adviceIfUnanswered = map[string]string{
	"client create": "the client may have been created: oauth-server client show '%[1]s' says so;" +
		" a secret that was made for it is lost then: client rotate-secret '%[1]s' gives it another one, or client delete '%[1]s' and create it again",
	"client update":        clientMayBeChanged,
	"client rotate-secret": clientMayBeChanged,
	"client revoke":        clientMayBeChanged,
	"client delete":        "the client may have been deleted: if oauth-server client show '%[1]s' still shows it, delete it again",
	"user create": "the user may have been created, with that password: oauth-server user list says so;" +
		" if %[1]q is not in it, create the user again",
	"user passwd":   userMayBeChanged,
	"user revoke":   userMayBeChanged,
	"user operator": userMayBeChanged,
	"user delete":   "the user may have been deleted: if oauth-server user list still shows %[1]q, delete the user again",
}

// unanswered adds the command's advice to the error of a change that may have been made.
func unanswered(cmd *cobra.Command, args []string, err error) error {
	var u *adminclient.UnansweredError
	advice := adviceIfUnanswered[cmd.Parent().Name()+" "+cmd.Name()]
	if advice == "" || len(args) == 0 || !errors.As(err, &u) {
		return err
	}
	return fmt.Errorf("%w; %s", err, fmt.Sprintf(advice, args[0]))
}
