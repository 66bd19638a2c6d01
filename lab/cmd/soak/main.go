// Command soak shows that attacks do not starve a server's good clients. `make soak` runs it:
//
//	go -C lab run ./cmd/soak [-duration 10m]
//
// It starts a server with the embedded store and 50 good clients, each with two token requests per second, half
// client_credentials, half refreshes. Attacks come in phases from eight addresses (127.0.1.1 to .8, so it needs Linux), and
// once from the address of the good clients: slow connections, sign-ins, unknown clients, random and spent refresh tokens,
// introspection, then all together. Limits are the defaults, except that the good clients' limits are above their rate and
// the attackers' app has no limit on token requests.
//
// It fails, and keeps the server's log, if in any phase fewer than 99.9 % of good requests get 200, fewer than 99 % get it
// within 50 ms from when they were due, or peak memory grows. Everything shares one machine: before you trust a failure,
// check the first phase and the columns stalled, other programs and waited (processors that the server lacked).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

// The numbers of clients, attackers and their requests.
const (
	goodCount   = 50               // good clients; every other one refreshes the tokens of a user
	goodRate    = 2                // requests per second of each
	connections = 2000             // slow ones
	floodRate   = 100              // requests per second of each flood
	addresses   = 8                // that the attacks come from
	patience    = 10 * time.Second // after which a caller hangs up
)

func main() {
	duration := flag.Duration("duration", 10*time.Minute, "length of all phases together, at least 20s")
	flag.Parse()
	process.Main("soak", func(ctx context.Context) error {
		if *duration < 20*time.Second {
			return errors.New("-duration is at least 20s")
		}
		return process.InDir("soak", func(dir string) error { return run(ctx, dir, *duration) })
	})
}

func run(ctx context.Context, dir string, duration time.Duration) error {
	s, err := start(ctx, dir)
	if err != nil {
		return err
	}
	var all []figures
	for _, p := range phases(duration) {
		fmt.Printf("%s  %s for %v\n", time.Now().Format(time.TimeOnly), p.name, p.length)
		f, failed := s.run(ctx, p)
		if err = failed; err != nil {
			break
		}
		all = append(all, f)
	}
	log, _ := os.ReadFile(s.server.Log())
	if err := errors.Join(err, s.server.Stop()); err != nil {
		return err
	}
	text, err := verdict(all)
	fmt.Printf("%s\nThe server's log (warnings and errors) has %d KiB.\n%s", report(all), len(log)>>10, text)
	return err
}

// The attackers' own registrations: what an attacker can have who is an ordinary customer.
const (
	attackApp  = "attack-app" // a public client, without a limit on token requests
	attackAPI  = "attack-api" // a confidential client, for introspection
	attackUser = "attack-user"
	password   = "a quiet harbour at four in the morning" // of all users
)

func goodID(n int) string { return fmt.Sprintf("good-%03d", n) }

// userName is a user of the good clients, if there is one of that number; wrong passwords are tried with all numbers.
func userName(n int) string { return fmt.Sprintf("user-%03d", n) }

// soak is a running server and those who use it.
type soak struct {
	server *servers.Server
	good   *good
	token  string // an access token of attackAPI
}

// start builds the server, registers clients and users, starts it, and signs in.
func start(ctx context.Context, dir string) (*soak, error) {
	binary, err := servers.BuildServer(ctx, dir)
	if err != nil {
		return nil, err
	}
	store := servers.InFile(binary, dir, "data")
	var clients []*goodClient
	errs := []error{
		store.CreateClient(ctx, attackAPI, "--grant=client_credentials"), store.CreateUser(ctx, attackUser, password),
		store.CreateClient(ctx, attackApp, "--public", "--scope=read", "--grant=refresh_token", "--grant=password"),
	}
	for n := range goodCount {
		c := &goodClient{id: goodID(n)}
		clients = append(clients, c)
		if n%2 == 0 {
			errs = append(errs, store.CreateClient(ctx, c.id, "--scope=read", "--grant=client_credentials"))
			continue
		}
		c.user = userName(n)
		errs = append(errs, store.CreateUser(ctx, c.user, password),
			store.CreateClient(ctx, c.id, "--scope=read", "--grant=refresh_token", "--grant=password"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s := &soak{}
	if s.server, err = store.Serve(ctx, process.AnyCore, serverConfig()); err != nil {
		return nil, err
	}
	s.good = &good{server: s.server, free: clients, open: map[int]*goodClient{}}
	if err := s.signIn(ctx); err != nil {
		return nil, errors.Join(err, s.server.Stop())
	}
	return s, nil
}

func (s *soak) signIn(ctx context.Context) error {
	for _, c := range s.good.free {
		if c.user == "" {
			continue
		}
		a, err := s.server.Token(ctx, c.id, servers.SignIn(c.user, password))
		if err != nil {
			return err
		}
		c.token = a.RefreshToken
	}
	a, err := s.server.Token(ctx, attackAPI, servers.Own())
	s.token = a.AccessToken
	return err
}

// serverConfig returns the configuration of the server: the defaults, except that good clients stay below their limits, and
// that the attackers' app has no limit on token requests: it would protect the code behind it.
func serverConfig() string {
	limit := fmt.Sprintf("[{ name: per-minute, requests: %d, window: 60s }]", goodRate*60*2+60)
	text := fmt.Sprintf("log: { level: warn }\nrate_limit:\n  clients:\n    %s: { trusted: true }\n", attackApp)
	for n := range goodCount {
		text += fmt.Sprintf("    %s: { user: %s, client: %s }\n", goodID(n), limit, limit)
	}
	return text
}
