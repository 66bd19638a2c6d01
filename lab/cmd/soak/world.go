package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/lab/process"
	"oauth-server/lab/traffic"
)

// The attackers' own registrations: what an attacker can have who is an ordinary customer.
const (
	attackApp  = "attack-app" // a public client, without a limit on token requests
	attackAPI  = "attack-api" // a confidential client, for introspection
	attackUser = "attack-user"
)

// world is a running server and those who use it.
type world struct {
	options
	server      *process.Process
	url         string
	metrics     string // URL
	credentials traffic.Credentials
}

// start builds the server, registers clients and users, and starts it.
func start(ctx context.Context, o options) (*world, error) {
	w := &world{options: o}
	binary := filepath.Join(o.dir, "oauth-server")
	if err := process.Execute(ctx, o.root, "go", "build", "-o", binary, "./cmd/oauth-server"); err != nil {
		return nil, err
	}
	where := config.Store{Embedded: &config.Embedded{Path: filepath.Join(o.dir, "oauth-server.db")}}
	flags := []string{"--data=" + where.Embedded.Path}
	if o.mongoDB != "" {
		where = config.Store{MongoDB: &config.MongoDB{URI: o.mongoDB, Database: "soak_" + strings.ToLower(rand.Text())}}
		flags = []string{"--mongodb-uri=" + o.mongoDB, "--mongodb-database=" + where.MongoDB.Database}
		if err := process.Execute(ctx, o.root, append([]string{binary, "migrate", "up"}, flags...)...); err != nil {
			return nil, err
		}
	}
	if err := w.register(ctx, where); err != nil {
		return nil, err
	}
	return w, w.serve(ctx, binary, flags)
}

func (w *world) register(ctx context.Context, where config.Store) (err error) {
	store, err := app.OpenStore(ctx, where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	clients := append(goodClients(w.good), traffic.Client{ID: attackAPI, Grant: clientcfg.ClientCredentials})
	now := time.Now()
	if w.credentials, err = traffic.Register(ctx, store, clients, now); err != nil {
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
	w.credentials.Passwords[attackUser] = password
	_, err = app.CreateUser(ctx, store, attackUser, password, clientcfg.NoAccess, now)
	return err
}

// serve starts the server and waits until it is ready. If it fails, nothing runs.
func (w *world) serve(ctx context.Context, binary string, flags []string) error {
	file := filepath.Join(w.dir, "oauth-server.yaml")
	if err := os.WriteFile(file, []byte(serverConfig(goodClients(w.good), w.goodRate)), 0o600); err != nil {
		return err
	}
	free, err := process.FreeAddresses(ctx, 2)
	if err != nil {
		return err
	}
	w.url, w.metrics = "http://"+free[0], "http://"+free[1]+"/metrics"
	args := append([]string{
		binary, "serve", "--config=" + file, "--listen=" + free[0], "--admin-listen=" + free[1], "--log-level=warn", "--drain-delay=0s",
	}, flags...)
	if w.server, err = process.Start(w.dir, "server", w.environment(), args...); err != nil {
		return err
	}
	if err := w.server.Await(ctx, w.url+"/readyz"); err != nil {
		return errors.Join(err, w.server.Stop())
	}
	return nil
}

func (w *world) environment() (env []string) {
	if w.goMaxProcs != "" {
		env = append(env, "GOMAXPROCS="+w.goMaxProcs)
	}
	if w.goMemLimit != "" {
		env = append(env, "GOMEMLIMIT="+w.goMemLimit)
	}
	return env
}

// serverConfig returns the configuration of the server: the defaults, except that good clients
// have limits that they stay below, and that the attackers' app has none, so that no limit on
// token requests protects what is attacked.
func serverConfig(good []traffic.Client, rate float64) string {
	limit := fmt.Sprintf("[{ name: per-minute, requests: %d, window: 60s }]", int(rate*60*2)+60)
	var b strings.Builder
	fmt.Fprintf(&b, "rate_limit:\n  clients:\n    %s: { trusted: true }\n", attackApp)
	for i := range good {
		fmt.Fprintf(&b, "    %s: { user: %s, client: %s }\n", good[i].ID, limit, limit)
	}
	return b.String()
}
