package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/lab/servers"
)

// together is how many clients or policies share an entry of the trail.
const together = 1000

// fill puts clients and policies into a store, with few entries of the trail: one by one they take hours. No server may
// have the file open.
func fill(ctx context.Context, s *servers.Store, clients, policies int) (err error) {
	where := config.Store{Embedded: &config.Embedded{Path: s.File}}
	if s.File == "" {
		where = config.Store{MongoDB: &config.MongoDB{URI: s.URI, Database: s.Database}}
	}
	opened, err := app.OpenStore(ctx, where)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	f, err := store.NewFollower(ctx, opened)
	if err != nil {
		return err
	}
	for first := 0; first < clients; first += together {
		if err := fillClients(ctx, f, first, min(clients, first+together)); err != nil {
			return err
		}
	}
	source, err := clientcfg.NewPolicySource(ctx, f, clientcfg.PolicyOptions{})
	if err != nil {
		return err
	}
	for first := 0; first < policies; first += together {
		if err := fillPolicies(ctx, source, first, min(policies, first+together)); err != nil {
			return err
		}
	}
	return nil
}

func fillClients(ctx context.Context, f *store.Follower, first, end int) error {
	_, err := f.Append(ctx, func(int64) (entry store.Entry, writes []store.Write, err error) {
		for i := first; i < end && err == nil; i++ {
			c, w := client(i), store.Write{Table: clientcfg.ClientsTable}
			w.Record, err = clientcfg.EncodeClient(&c)
			writes = append(writes, w)
		}
		return store.Entry{At: time.Now(), Value: []byte("{}")}, writes, err
	})
	return err
}

// client is the client of that number. Most are alike but for their name, secret and redirect URI.
func client(i int) clientcfg.Client {
	id := servers.ImportedClient(i)
	return clientcfg.Client{
		ID: id, Name: fmt.Sprintf("Application number %d", i), SecretDigest: secret.DigestOf(id),
		Grants:       []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{fmt.Sprintf("https://app-%d.example.com/oauth/callback", i)},
		Scopes:       []string{"profile", fmt.Sprint("area-", i%50)}, CreatedAt: time.Now().UTC().Truncate(time.Second), Version: 1,
	}
}

func fillPolicies(ctx context.Context, source *clientcfg.PolicySource, first, end int) error {
	var changes []clientcfg.Change
	for i := first; i < end; i++ {
		limit := ratelimit.NewLimit("per-minute", int64(i%500+1), time.Minute)
		change, err := clientcfg.SetTarget(clientcfg.PolicyTarget(servers.ImportedClient(i)), &clientcfg.Value{
			Policy: ratelimit.Policy{User: []ratelimit.Limit{limit}}, Note: "contract",
		})
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	_, err := source.Change(ctx, func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
		return clientcfg.Event{At: time.Now().UTC().Truncate(time.Millisecond), Action: "set", Target: "policies", Changes: changes}, nil
	})
	return err
}
