package accounts

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// importing is the import of clients or users from JSON lines.
type importing struct {
	*connect.Commands
	what           string // client or user
	partial, check bool
	// readLine returns the name on a line and a function that stores it. Its errors are about this
	// line.
	readLine func(v *strict.Value) (name string, store func(context.Context, *adminclient.Client) error, err error)

	read     int // lines, without empty ones
	lines    []importLine
	problems []importProblem
}

// imported is the output of an import.
type imported struct {
	Imported int      `json:"imported"`
	InOrder  int      `json:"in_order"` // valid lines, before anything is stored
	Problems []string `json:"problems"`
}

const importLong = `The file has one JSON object per line; - reads standard input. All lines are checked first. If any
line has a problem, nothing is imported. --partial imports the valid lines anyway, and --check
only checks.`

func (i *importing) command(use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: short + ".\n\n" + importLong + "\n\n" + long, Example: example, Args: command.Takes("FILE")}
	cmd.Flags().BoolVar(&i.partial, "partial", false, "import the valid lines even if others are not")
	cmd.Flags().BoolVar(&i.check, "check", false, "check the file and import nothing")
	i.Creates(cmd, i.withoutStore, func(ctx context.Context, api *adminclient.Client, _ []string) error { return i.run(ctx, api) })
	return first(cmd, func(args []string) error { return i.readFile(args[0]) })
}

func newUserImport(c *connect.Commands) *cobra.Command {
	i := &importing{Commands: c, what: "user", readLine: readUser}
	return i.command("import FILE", "Import users with password hashes from another program",
		`  username       as for user create
  password_hash  argon2id: $argon2id$v=19$m=…,t=…,p=…$salt$key
                 bcrypt:   $2a$, $2b$ or $2y$, with a cost of at most 14
                 PBKDF2:   $pbkdf2-sha256$i=…,l=…$salt$key, or Django's pbkdf2_sha256$…$salt$key;
                           also sha1 and sha512; at most 2,000,000 iterations
  operator       read or write; omit for ordinary users

The server replaces an imported hash with its own when the user next signs in.`,
		`  oauth-server user import users.jsonl --check
  echo '{"username": "ada", "password_hash": "$2b$12$…"}' | oauth-server user import -`)
}

func newClientImport(c *connect.Commands) *cobra.Command {
	i := &importing{Commands: c, what: "client"}
	i.readLine = i.readClient
	return i.command("import FILE", "Import clients with the SHA-256 hashes of their secrets",
		`Fields are named as in RFC 7591: client_id, client_name, token_endpoint_auth_method (none for a
public client), grant_types, redirect_uris and scope. Further fields: audience, require_pkce,
resource_server, first_party and labels, such as {"team": "payments"}.

  client_secret_hash  SHA-256 of the secret in hex or base64, with or without a {SHA256} prefix.
                      The secret must have at least 128 random bits.`,
		`  oauth-server client import clients.jsonl --check
  echo '{"client_id": "shop", "client_secret_hash": "…"}' | oauth-server client import -`)
}

func readUser(v *strict.Value) (string, func(context.Context, *adminclient.Client) error, error) {
	var in struct {
		Username string           `json:"username"`
		Hash     string           `json:"password_hash"`
		Operator clientcfg.Access `json:"operator"`
	}
	errs := v.Decode(&in, nil)
	name, err := username.New(in.Username)
	errs.AddUnreported(fielderr.Of(err))
	errs.AddUnreported(fielderr.Of(secret.CheckForeign(in.Hash)))
	if a := in.Operator; a != clientcfg.NoAccess && a != clientcfg.ReadAccess && a != clientcfg.WriteAccess {
		errs.AddUnreported(fielderr.Errors{{Path: "operator", Message: fmt.Sprintf("%q is not one of read, write", string(a))}})
	}
	return name, func(ctx context.Context, api *adminclient.Client) error {
		return explain("user", name, api.Do(ctx, http.MethodPost, "/users", registry.NewUser{Name: name, Hash: in.Hash, Operator: in.Operator}, nil))
	}, errs.Err()
}

func (i *importing) readClient(v *strict.Value) (string, func(context.Context, *adminclient.Client) error, error) {
	cl, err := adminapi.ReadNewClient(v)
	errs := fielderr.Of(err)
	if err == nil {
		complete := cl
		if len(complete.Grants) == 0 {
			complete.Grants = clientcfg.UsualGrants(&complete)
		}
		errs = fielderr.Of(complete.Validate())
		for i := range errs {
			if errs[i].Path == "token_endpoint_auth_method" {
				errs[i] = fielderr.Error{Path: "client_secret_hash", Message: "is missing; for a public client, set token_endpoint_auth_method to none"}
			}
		}
	}
	return cl.ID, func(ctx context.Context, api *adminclient.Client) error {
		_, _, err := createClient(ctx, i.Commands, api, cl)
		return explain("client", cl.ID, err)
	}, errs.Err()
}

// run imports the lines that were read.
func (i *importing) run(ctx context.Context, api *adminclient.Client) error {
	taken, err := takenNames(ctx, api)
	if err != nil {
		return err
	}
	i.refuse(taken)
	return i.finish(func() []importProblem { return i.store(ctx, api) })
}

// withoutStore finishes an import that stores nothing, if there is no store yet.
func (i *importing) withoutStore() (done bool, err error) {
	if i.stores() {
		return false, nil
	}
	i.Note("There is no data file yet, so names are compared only with each other.")
	return true, i.finish(nil)
}

// stores reports whether anything is to be stored.
func (i *importing) stores() bool {
	return !i.check && len(i.lines) > 0 && (len(i.problems) == 0 || i.partial)
}

// finish calls store if there is anything to store, and reports the imported lines and the
// problems.
func (i *importing) finish(store func() []importProblem) error {
	for _, p := range i.problems {
		i.Note("%s", p.text)
	}
	result := imported{InOrder: len(i.lines), Problems: []string{}}
	switch {
	case i.stores():
		failed := store()
		for _, p := range failed {
			i.Note("%s", p.text)
		}
		i.problems = append(i.problems, failed...)
		result.Imported = len(i.lines) - len(failed)
	case !i.check && len(i.problems) > 0:
		next := ", or import the valid ones with --partial"
		if len(i.lines) == 0 {
			next = ": none is valid"
		}
		i.Note("Nothing was imported. Fix the lines%s.", next)
	}
	bad := map[int]bool{}
	for _, p := range i.problems {
		bad[p.line], result.Problems = true, append(result.Problems, p.text)
	}
	text := fmt.Sprintf("imported %d %s", result.Imported, command.Plural(result.Imported, i.what))
	switch {
	case i.check && len(bad) == 0:
		text = fmt.Sprintf("the file is valid: %d %s", result.InOrder, command.Plural(result.InOrder, i.what))
	case i.check:
		text = fmt.Sprintf("%d of %d lines are valid", result.InOrder, i.read)
	}
	if err := i.Answer(result, text); err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d of %d lines have problems", len(bad), i.read)
	}
	return nil
}

// store stores the lines, up to [command.ImportAtOnce] at a time, and returns the failures in line order.
func (i *importing) store(ctx context.Context, api *adminclient.Client) (failed []importProblem) {
	lines := i.lines
	errs := make([]error, len(lines))
	var calls errgroup.Group
	calls.SetLimit(command.ImportAtOnce)
	for n := range lines {
		calls.Go(func() error {
			errs[n] = lines[n].store(ctx, api)
			return nil
		})
	}
	_ = calls.Wait() // each error belongs to its line
	for n, err := range errs {
		if err != nil {
			failed = append(failed, problemOf(lines[n].number, err))
		}
	}
	return failed
}
