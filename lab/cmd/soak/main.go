// Command soak shows that attacks do not starve a server's good clients. It builds and
// starts one server, lets good clients request tokens at a steady rate, attacks the server
// in phases from other addresses (and once from the same), prints the figures of each
// phase, and exits with status 1 if a bound is missed: in every phase 99.9 % of the good
// clients' requests succeed, 99 % of them within 50 ms, and the server's memory does not
// grow. `make soak` runs it:
//
//	go -C lab run ./cmd/soak [-duration 10m] [-only sign-ins] [-mongodb-uri URI]
//
// It uses the addresses 127.0.1.x, so it runs on Linux only.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
	"oauth-server/lab/traffic"
)

// options are the flags.
type options struct {
	duration time.Duration
	only     string // name of a phase
	mongoDB  string // URI; empty for the embedded store
}

// The numbers of clients, attackers and their requests.
const (
	goodCount   = 50   // good clients; every other one refreshes the tokens of a user
	goodRate    = 2    // requests per second of each
	connections = 2000 // slow ones
	floodRate   = 100  // requests per second of each flood
	addresses   = 8    // that the attacks come from
)

// attackCommand makes this program the process that attacks, see [attackMain].
const attackCommand = "attack"

func main() {
	if len(os.Args) == 2 && os.Args[1] == attackCommand {
		exit(attackMain(os.Stdin, os.Stdout))
	}
	var o options
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "length of all phases together, at least 20s")
	flag.StringVar(&o.only, "only", "", "name of a phase that alone follows the first, such as sign-ins")
	flag.StringVar(&o.mongoDB, "mongodb-uri", "", "MongoDB for the server, which gets a new database there; the embedded store if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, o)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, o options) (err error) {
	all := phases(o.duration, o.only)
	if o.duration < 20*time.Second || all == nil {
		return errors.New("-duration is at least 20s, and -only is the name of a phase")
	}
	dir, err := os.MkdirTemp("", "soak-*")
	if err != nil {
		return err
	}
	fmt.Println("data and logs are in", dir, "until this ends without an error")
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		}
	}()
	s, err := start(ctx, dir, o.mongoDB)
	if err != nil {
		return err
	}
	figures, err := s.run(ctx, dir, all)
	log, _ := os.ReadFile(s.server.Log())
	if err := errors.Join(err, s.server.Stop()); err != nil {
		return err
	}
	text, err := verdict(figures)
	fmt.Printf("%s\nThe server's log (warnings and errors) has %d KiB.\n%s", report(o, figures), len(log)>>10, text)
	return err
}

// The attackers' own registrations: what an attacker can have who is an ordinary customer.
const (
	attackApp  = "attack-app" // a public client, without a limit on token requests
	attackAPI  = "attack-api" // a confidential client, for introspection
	attackUser = "attack-user"
)

// soak is a running server and those who use it.
type soak struct {
	server      *servers.Server
	credentials traffic.Credentials
}

// start builds the server, registers clients and users, and starts it.
func start(ctx context.Context, dir, mongoDB string) (*soak, error) {
	binary, err := servers.BuildServer(ctx, dir)
	if err != nil {
		return nil, err
	}
	store := servers.InFile(binary, dir, "data")
	where := config.Store{Embedded: &config.Embedded{Path: store.File}}
	if mongoDB != "" {
		if store, err = servers.InMongoDB(ctx, binary, dir, mongoDB); err != nil {
			return nil, err
		}
		where = config.Store{MongoDB: &config.MongoDB{URI: mongoDB, Database: store.Database}}
	}
	s := &soak{}
	if err := s.register(ctx, where); err != nil {
		return nil, err
	}
	store.Secrets = s.credentials.Secrets
	s.server, err = store.Serve(ctx, process.AnyCore, serverConfig())
	return s, err
}

func (s *soak) register(ctx context.Context, where config.Store) (err error) {
	store, err := app.OpenStore(ctx, where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	clients := append(goodClients(), traffic.Client{ID: attackAPI, Grant: clientcfg.ClientCredentials})
	now := time.Now()
	if s.credentials, err = traffic.Register(ctx, store, clients, now); err != nil {
		return err
	}
	publicApp := clientcfg.Client{
		ID: attackApp, Public: true, Scopes: []string{"read"},
		Grants: []clientcfg.Grant{clientcfg.RefreshToken, clientcfg.Password},
	}
	if _, _, err := app.CreateClient(ctx, store, publicApp, now); err != nil {
		return err
	}
	password := rand.Text()
	s.credentials.Passwords[attackUser] = password
	_, err = app.CreateUser(ctx, store, attackUser, password, clientcfg.NoAccess, now)
	return err
}

// serverConfig returns the configuration of the server: the defaults, except that good clients
// stay below their limits, and that the attackers' app has no limit on token requests: it would
// protect the code behind it.
func serverConfig() string {
	limit := fmt.Sprintf("[{ name: per-minute, requests: %d, window: 60s }]", goodRate*60*2+60)
	var b strings.Builder
	fmt.Fprintf(&b, "log: { level: warn }\nrate_limit:\n  clients:\n    %s: { trusted: true }\n", attackApp)
	for _, c := range goodClients() {
		fmt.Fprintf(&b, "    %s: { user: %s, client: %s }\n", c.ID, limit, limit)
	}
	return b.String()
}
