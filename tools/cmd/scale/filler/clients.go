package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"          //nolint:depguard // a million clients in bulk
	"go.mongodb.org/mongo-driver/v2/mongo"         //nolint:depguard // the same
	"go.mongodb.org/mongo-driver/v2/mongo/options" //nolint:depguard // the same

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// client is the client of that number: most are alike but for their name, secret and redirect URI.
func client(i int) clientcfg.Client {
	id := fmt.Sprintf("client-%07d", i)
	return clientcfg.Client{
		ID: id, Name: fmt.Sprintf("Application number %d", i), SecretDigest: secret.DigestOf(id),
		Grants:       []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{fmt.Sprintf("https://app-%d.example.com/oauth/callback", i)},
		Scopes:       []string{"profile", fmt.Sprint("area-", i%50)}, CreatedAt: time.Now().UTC().Truncate(time.Second),
	}
}

// fillDatabase inserts clients as the server stores them, in bulk: registering a million takes an hour.
func fillDatabase(ctx context.Context, uri, database string, n int) error {
	conn, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Disconnect(ctx) }()
	clients := conn.Database(database).Collection("clients")
	for first := 0; first < n; first += 1000 {
		docs := make([]any, 0, 1000)
		for i := first; i < min(n, first+1000); i++ {
			c := client(i)
			docs = append(docs, bson.D{
				{Key: "_id", Value: c.ID},
				{Key: "version", Value: int64(1)},
				{Key: "etag", Value: int64(1 + i)},
				{Key: "name", Value: c.Name},
				{Key: "secretSha256", Value: c.SecretDigest[:]},
				{Key: "grants", Value: c.Grants},
				{Key: "redirectUris", Value: c.RedirectURIs},
				{Key: "scopes", Value: c.Scopes},
				{Key: "createdAt", Value: c.CreatedAt},
			})
		}
		if _, err := clients.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false)); err != nil {
			return err
		}
	}
	return nil
}

// fillStore registers clients. The embedded store commits those that come at the same time together.
func fillStore(ctx context.Context, store app.Store, n int) error {
	const together = 1000
	errs := make([]error, together)
	var wg sync.WaitGroup
	for worker := range together {
		wg.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += together {
				errs[worker] = store.CreateClient(ctx, client(i))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
