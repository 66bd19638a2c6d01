package limits

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
)

const limitsLong = `Show and change the limits of a running server, through its admin API.

All instances apply a change within two seconds. If a change can deny more requests, the
command first shows the clients it would have denied in the last ten minutes, and asks for
confirmation.`

// LimitsCredentials says how a command gets a token for a server.
const LimitsCredentials = `To authenticate, create an admin client with "oauth-server client create ops --admin". Give its ID
with --client-id, and its secret in OAUTH_CLIENT_SECRET or with --client-secret-stdin. The secret
is sent only to the admin address, or to the address in --issuer. The token is cached, as in
"oauth-server token". To sign in as yourself instead, set OAUTH_TOKEN to the output of
"oauth-server token --grant authorization_code".

OAUTH_SERVER, OAUTH_ISSUER, OAUTH_CLIENT_ID, OAUTH_TOKEN, OAUTH_CA_FILE, OAUTH_CERT_FILE and
OAUTH_KEY_FILE can replace their flags.`

const limitsExample = `  oauth-server limits list
  oauth-server limits set shop --user 10/60s --user 2/1s --reason "ticket 4711"`

// limits holds the flags that the limits commands share: how to reach the server and how to make a
// change.
type limits struct {
	connect.API
	commands   *connect.Commands // for completions
	lasts      string            // --for
	yes, check bool
	since      time.Time // start of the client activity shown
}

// New makes the limits commands, and returns the completions of their flags by name, or by command and name.
func New(c *connect.Commands) (*cobra.Command, map[string]command.Completion) {
	l := &limits{API: connect.API{Env: c.Env}, commands: c}
	cmd := command.Group("limits", "Show and change the limits of a running server", limitsExample,
		l.newGet(), l.newSet(), l.newUnset(), l.newList(), l.newDryRun(), l.newTrust(), l.newCanary(), l.newPresets(), l.newCandidate(),
		l.newExport(), l.newDiff(), l.newApply(), l.newUndo(), l.newTop(), l.newReset(), l.newBans(), l.newUnban(), l.newAudit(), l.newStatus())
	cmd.Long = limitsLong
	l.Add(cmd.PersistentFlags(), "admin address of the server (default "+connect.DefaultAdmin+")")
	c.Uses(cmd, &l.API)
	refuseEmpty(cmd)
	return cmd, completions(c)
}

// maybeEmpty are the flags of the limits commands that accept an empty value, or report it
// themselves.
var maybeEmpty = []string{"note", "reason", "mode", "filter", "target", forUser}

// refuseEmpty makes the commands below cmd reject every other flag with an empty value, such as
// --for "$UNSET". Treated as absent, such a flag would make the change wider or permanent.
func refuseEmpty(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		refuseEmpty(below)
		below.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
			cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				list, isList := f.Value.(pflag.SliceValue)
				empty := f.Value.String() == "" || isList && strings.Join(list.GetSlice(), "") == ""
				if f.Changed && empty && !slices.Contains(maybeEmpty, f.Name) {
					err = command.Usagef("%s--%s is empty: give a value, or leave the flag out", command.Within(cmd), f.Name)
				}
			})
			return err
		}
	}
}

// changes adds the flags common to all changes.
func (l *limits) changes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&l.lasts, "for", "", "end the change automatically after this time: 90m, 2h, 7d")
	return l.confirmed(cmd)
}

// confirmed adds the flags of a permanent change.
func (l *limits) confirmed(cmd *cobra.Command) *cobra.Command {
	l.AddReason(cmd)
	cmd.Flags().BoolVarP(&l.yes, "yes", "y", false, "do not ask before a change that can deny more requests")
	cmd.Flags().BoolVar(&l.check, "check", false, "show the effect and change nothing")
	return cmd
}

// document is a value of the API with its JSON, which a script gets unchanged.
type document[T any] struct {
	Value T
	json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (d *document[T]) UnmarshalJSON(b []byte) error {
	d.RawMessage = slices.Clone(b)
	return json.Unmarshal(b, &d.Value)
}

// get reads a resource of the API.
func get[T any](ctx context.Context, l *limits, path string, query url.Values) (v T, err error) {
	api, err := l.Connect()
	if err != nil {
		return v, err
	}
	_, err = api.Get(ctx, path, query, &v)
	return v, err
}

// pages reads all pages of a list; never nil. It keeps the start of the client activity in l.since.
func pages[T any](ctx context.Context, l *limits, path string, query url.Values) ([]T, error) {
	api, err := l.Connect()
	if err != nil {
		return nil, err
	}
	all, last, err := adminclient.Pages[T](ctx, api, path, query)
	return all, errors.Join(err, last.Decode("since", &l.since))
}

// show reads a resource and writes it: unchanged for a script, formatted by text for a person.
func show[T any](ctx context.Context, l *limits, path string, query url.Values, text func(T) error) error {
	v, err := get[document[T]](ctx, l, path, query)
	switch {
	case err != nil:
		return err
	case l.Output == command.OutputJSON:
		return l.JSON(v)
	}
	return text(v.Value)
}

// The paths of resources. Names are escaped, because they may contain a slash.
const settingsPath = "/settings"

func policyPath(clientID string) string { return "/policies/" + adminapi.Escape(clientID) }

func candidatePath(name string) string { return "/candidates/" + adminapi.Escape(name) }

func tierPath(name string) string { return "/tiers/" + adminapi.Escape(name) }

func overridePath(clientID, username string) string {
	return policyPath(clientID) + "/users/" + adminapi.Escape(username)
}

func countersPath(clientID string) string {
	return "/clients/" + adminapi.Escape(clientID) + "/counters"
}

// notFound reports whether the server answered that the resource does not exist.
func notFound(err error) bool {
	var p *adminclient.ProblemError
	return errors.As(err, &p) && p.NotFound()
}

// only returns the single argument, or an empty string without arguments.
func only(args []string) string { return strings.Join(args, "") }
