package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"                        //nolint:depguard // counts what is in a file, of any build
	"go.mongodb.org/mongo-driver/v2/mongo"         //nolint:depguard // drops databases
	"go.mongodb.org/mongo-driver/v2/mongo/options" //nolint:depguard // the same

	"oauth-server/lab/machine"
)

// The people and clients of a store.
const (
	user, password = "ada", "a quiet harbour at four in the morning"
	callback       = "http://127.0.0.1/callback"
)

// config leaves no limit that this program reaches.
const config = `log: { level: error }
rate_limit: { mode: "off" }
failed_attempts: { clients: { per_address: 1000000, per_name: 1000000 } }
passwords: { sign_ins_per_minute: 1000000 }
tokens: { code_ttl: 10m }
`

// store is a store of one build, in a file or in MongoDB.
type store struct {
	*side
	file, uri, database string
	secrets             map[string]string // by client
	tokens              []string          // refresh tokens, one for each connection
}

func (s *side) newFile(name string) *store {
	return &store{side: s, file: filepath.Join(s.dir, name+".db"), secrets: map[string]string{}}
}

// newDatabase makes a database, which run drops.
func (s *side) newDatabase(ctx context.Context) (*store, error) {
	if s.uri == "" {
		return nil, errors.New("-mongodb is needed")
	}
	st := &store{side: s, uri: s.uri, database: "versus_" + strings.ToLower(rand.Text()), secrets: map[string]string{}}
	s.databases = append(s.databases, st)
	_, err := st.command(ctx, "", "migrate", "up")
	return st, err
}

func (st *store) drop(ctx context.Context) error {
	if st.database == "" {
		return nil
	}
	client, err := mongo.Connect(options.Client().ApplyURI(st.uri))
	if err != nil {
		return err
	}
	return errors.Join(client.Database(st.database).Drop(ctx), client.Disconnect(ctx))
}

// flags are those of every command that uses the store.
func (st *store) flags() []string {
	if st.file != "" {
		return []string{"--data=" + st.file}
	}
	return []string{"--mongodb-uri=" + st.uri, "--mongodb-database=" + st.database}
}

// command runs a command on the store.
func (st *store) command(ctx context.Context, input string, args ...string) ([]byte, error) {
	return st.execute(ctx, input, append(args, st.flags()...)...)
}

func (st *store) execute(ctx context.Context, input string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, st.binary, args...) //nolint:gosec // G204: what is compared
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", st.name, strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// register makes the user and the clients.
func (st *store) register(ctx context.Context) error {
	for id, flags := range map[string][]string{
		"shop":   {"--grant=client_credentials"},
		"legacy": {"--grant=password", "--grant=refresh_token"},
		"ops":    {"--admin"},
		"web":    {"--grant=authorization_code", "--grant=refresh_token", "--first-party", "--redirect-uri=" + callback},
	} {
		args := flags
		if id != "ops" {
			args = append(args, "--scope=read", "--scope=write")
		}
		if st.file != "" {
			args = append(args, "--create")
		}
		if err := st.create(ctx, id, args...); err != nil {
			return err
		}
	}
	_, err := st.command(ctx, password, "user", "create", user, "--password-stdin")
	return err
}

// create makes a client.
func (st *store) create(ctx context.Context, id string, flags ...string) error {
	out, err := st.command(ctx, "", append([]string{"client", "create", id, "--output=json"}, flags...)...)
	if err != nil {
		return err
	}
	var made struct {
		Secret string `json:"client_secret"`
	}
	err = json.Unmarshal(out, &made)
	st.secrets[id] = made.Secret
	return err
}

// fill imports clients.
func (st *store) fill(ctx context.Context, from, to int) error {
	var lines strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&lines, `{"client_id":"client-%07d","client_name":"Application number %d","grant_types":["authorization_code","refresh_token"],`+
			`"redirect_uris":["https://app-%d.example.com/oauth/callback"],"scope":"profile area-%d","client_secret_hash":"{SHA256}%064x"}`+"\n", i, i, i, i%50, i+1)
	}
	args := []string{"client", "import", "-"}
	if st.file != "" {
		args = append(args, "--create")
	}
	_, err := st.command(ctx, lines.String(), args...)
	return err
}

// bytesInUse returns how many bytes of the file hold data. No server may have it open.
func (st *store) bytesInUse() (n int, err error) {
	db, err := bolt.Open(st.file, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return n, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			stats := b.Stats()
			n += stats.BranchAlloc + stats.LeafAlloc
			return nil
		})
	})
}

// instance is a running server.
type instance struct {
	*store
	*machine.Process
	address string
	admin   string
	took    time.Duration // until it was ready
}

func (st *store) serve(ctx context.Context) (*instance, error) {
	file := filepath.Join(st.dir, "oauth-server.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	address, err := machine.FreeAddress(ctx)
	admin, err2 := machine.FreeAddress(ctx)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	args := append([]string{
		"env", "OAUTH_OVERLOAD_MODE=off", st.binary, "serve", "--config=" + file, "--listen=" + address, "--admin-listen=" + admin,
		"--issuer=http://" + address, "--drain-delay=0s",
	}, st.flags()...)
	began := time.Now()
	p, err := machine.Start(ctx, machine.AnyCore, st.dir, address, args...)
	if err != nil {
		return nil, err
	}
	i := &instance{store: st, Process: p, address: address, admin: admin}
	for {
		res, err := http.Get("http://" + address + "/readyz") //nolint:noctx // on this machine
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				i.took = time.Since(began)
				return i, nil
			}
		}
		if time.Since(began) > 2*time.Minute || ctx.Err() != nil {
			return nil, errors.Join(errors.New("the server is not ready"), p.Stop())
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // no test
	}
}

// administer runs a command through the server.
func (i *instance) administer(ctx context.Context, args ...string) error {
	_, err := i.execute(ctx, i.secrets["ops"], append(args, "--server=http://"+i.admin, "--client-id=ops", "--client-secret-stdin", "--no-cache")...)
	return err
}

// processor returns the processor time that the server has used.
func (i *instance) processor() (time.Duration, error) { return machine.Threads(i.PID())() }

// serving runs do while a server runs on the store.
func (st *store) serving(ctx context.Context, do func(i *instance) error) error {
	i, err := st.serve(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(i), i.Stop())
}
