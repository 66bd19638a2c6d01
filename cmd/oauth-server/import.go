package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/registry"
	"oauth-server/internal/secret"
	"oauth-server/internal/strict"
	"oauth-server/internal/username"
)

// The bounds of what is imported.
const (
	maxImportLine = 64 << 10
	importAtOnce  = 32
)

// importing is the import of clients or users from JSON lines.
type importing struct {
	*cli
	what           string // clients or users
	partial, check bool
	// read returns the name on a line and what stores it; the errors are those of the line.
	read func(v *strict.Value) (name string, store func(context.Context, registrar) error, err error)
}

// imported is the answer of an import.
type imported struct {
	Imported int      `json:"imported"`
	Problems []string `json:"problems"`
}

const importLong = `The file has a JSON object on each line; - is standard input. All lines are checked first. If there is
anything wrong, every problem is shown with its line, and nothing is imported unless --partial is given:
then the lines in order are. --check only checks.`

func (i *importing) command(use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: importLong + "\n\n" + long, Example: example, Args: takes("FILE")}
	cmd.Flags().BoolVar(&i.partial, "partial", false, "import the lines that are in order although others are not")
	cmd.Flags().BoolVar(&i.check, "check", false, "check the lines, and import nothing")
	i.creating(cmd, i.run)
	return cmd
}

func newUserImport(c *cli) *cobra.Command {
	i := &importing{cli: c, what: "users", read: readUser}
	return i.command("import FILE", "Import users with the password hashes of another program",
		`  username       as for user create
  password_hash  argon2id: $argon2id$v=19$m=…,t=…,p=…$salt$key
                 bcrypt:   $2a$, $2b$ or $2y$, of a cost of at most 14
                 PBKDF2:   $pbkdf2-sha256$i=…,l=…$salt$key, or Django's pbkdf2_sha256$…$salt$key;
                           also with sha1 and sha512, of at most 2,000,000 iterations
  operator       read or write; left out for neither

A hash is replaced by one of our own at the next right password. Import when all instances run this
release: an earlier one cannot verify them.`,
		`  echo '{"username": "ada", "password_hash": "$2b$12$…"}' | oauth-server user import -`)
}

func newClientImport(c *cli) *cobra.Command {
	i := &importing{cli: c, what: "clients", read: readClient}
	return i.command("import FILE", "Import clients with the SHA-256 of their secrets",
		`The names are those of RFC 7591: client_id, client_name, token_endpoint_auth_method (none for a public
client), grant_types, redirect_uris, scope; and audience, require_pkce, resource_server, first_party, and
labels, an object such as {"team": "payments"}.

  client_secret_hash  SHA-256 of the secret, hexadecimal or base64, after {SHA256} or by itself. The secret
                      has to be random, of 128 bits or more: a password is found by trying.`,
		`  echo '{"client_id": "shop", "scope": "orders:read", "client_secret_hash": "{SHA256}…"}' | oauth-server client import -`)
}

func readUser(v *strict.Value) (string, func(context.Context, registrar) error, error) {
	var in struct {
		Username string           `json:"username"`
		Hash     string           `json:"password_hash"`
		Operator clientcfg.Access `json:"operator"`
	}
	errs := v.Decode(&in, nil)
	name, err := username.New(in.Username)
	if err != nil {
		errs.AddUnreported(fielderr.Errors{{Path: "username", Message: strings.TrimPrefix(err.Error(), "username: ")}})
	}
	if err := secret.CheckForeign(in.Hash); err != nil {
		errs.AddUnreported(fielderr.Errors{{Path: "password_hash", Message: strings.TrimPrefix(err.Error(), "password_hash: ")}})
	}
	if a := in.Operator; a != clientcfg.NoAccess && a != clientcfg.ReadAccess && a != clientcfg.WriteAccess {
		errs.AddUnreported(fielderr.Errors{{Path: "operator", Message: fmt.Sprintf("%q is none of read, write", string(a))}})
	}
	return name, func(ctx context.Context, r registrar) error {
		_, err := r.CreateUser(ctx, registry.NewUser{Name: name, Hash: in.Hash, Operator: in.Operator})
		return userError(name, err)
	}, errs.Err()
}

func readClient(v *strict.Value) (string, func(context.Context, registrar) error, error) {
	cl, err := admin.ReadNewClient(v)
	errs := fielderr.Of(err)
	if err == nil {
		judged := cl
		if len(judged.Grants) == 0 {
			judged.Grants = clientcfg.UsualGrants(&judged)
		}
		errs = clientcfg.MetadataErrors(fielderr.Of(judged.Validate()))
		for i := range errs {
			if errs[i].Path == "token_endpoint_auth_method" {
				errs[i] = fielderr.Error{Path: "client_secret_hash", Message: "is missing; a public client has the token_endpoint_auth_method none, and no hash"}
			}
		}
	}
	return cl.ID, func(ctx context.Context, r registrar) error {
		_, _, err := r.CreateClient(ctx, cl)
		return clientError(cl.ID, err)
	}, errs.Err()
}

// importLine is a line that is in order.
type importLine struct {
	number int
	name   string
	store  func(context.Context, registrar) error
}

func (i *importing) run(ctx context.Context, r registrar, args []string) error {
	in, closeIn, err := i.open(args[0])
	if err != nil {
		return err
	}
	defer closeIn()
	taken, err := takenNames(ctx, r)
	if err != nil {
		return err
	}
	lines, problems, err := i.readAll(in, taken)
	if err != nil {
		return err
	}
	bad := len(problems)
	for _, p := range problems {
		i.note("%s", p)
	}
	result := imported{Problems: append([]string{}, problems...)}
	switch {
	case i.check:
	case bad > 0 && !i.partial:
		i.note("Nothing was imported. Mend the lines, or import the others with --partial.")
	default:
		failed := i.store(ctx, r, lines)
		for _, p := range failed {
			i.note("%s", p)
		}
		bad += len(failed)
		result.Imported, result.Problems = len(lines)-len(failed), append(result.Problems, failed...)
	}
	if err := i.answer(result, fmt.Sprintf("imported %d %s", result.Imported, i.what)); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d lines have problems", bad)
	}
	return nil
}

func (i *importing) open(name string) (io.Reader, func(), error) {
	if name == "-" {
		return i.in, func() {}, nil
	}
	f, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	return f, func() { _ = f.Close() }, nil
}

// takenNames returns what has each name: a user, also by the form that the name would have now, or a client.
func takenNames(ctx context.Context, r registrar) (map[string]string, error) {
	taken := map[string]string{}
	users, err := allUsers(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		taken[u.Username] = "there is a user of that name already"
		if canonical, err := username.Canonical(u.Username); err == nil {
			taken[canonical] = taken[u.Username]
		}
	}
	clients, err := r.Clients(ctx, registry.Filter{})
	if err != nil {
		return nil, err
	}
	for i := range clients.Clients {
		taken[clients.Clients[i].ID] = "there is a client of that name already"
	}
	for _, u := range clients.Unreadable {
		taken[u.ClientID] = "there is a client of that name already"
	}
	return taken, nil
}

// readAll reads and checks all lines.
func (i *importing) readAll(in io.Reader, taken map[string]string) (lines []importLine, problems []string, err error) {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 0, maxImportLine), maxImportLine)
	number := 0
	for scanner.Scan() {
		number++
		if strings.TrimSpace(scanner.Text()) == "" {
			continue
		}
		problem := func(err error) {
			for line := range strings.Lines(err.Error()) {
				problems = append(problems, fmt.Sprintf("line %d: %s", number, strings.TrimSpace(line)))
			}
		}
		v, err := strict.ParseJSON(scanner.Bytes())
		if err != nil {
			problem(err)
			continue
		}
		name, store, err := i.read(v)
		if why, is := taken[name]; err == nil && is {
			err = errors.New(why)
		}
		if err != nil {
			problem(err)
			continue
		}
		taken[name] = fmt.Sprintf("line %d has the same name", number)
		lines = append(lines, importLine{number, name, store})
	}
	if err := scanner.Err(); err != nil {
		return nil, nil, fmt.Errorf("read line %d: %w; a line has at most %d bytes", number+1, err, maxImportLine)
	}
	return lines, problems, nil
}

// store stores the lines, some at a time, and returns what failed, in the order of the lines.
func (i *importing) store(ctx context.Context, r registrar, lines []importLine) (failed []string) {
	var wg sync.WaitGroup
	errs, next := make([]error, len(lines)), make(chan int)
	for range importAtOnce {
		wg.Go(func() {
			for n := range next {
				errs[n] = lines[n].store(ctx, r)
			}
		})
	}
	for n := range lines {
		next <- n
	}
	close(next)
	wg.Wait()
	for n, err := range errs {
		if err != nil {
			failed = append(failed, fmt.Sprintf("line %d: %v", lines[n].number, err))
		}
	}
	return failed
}
