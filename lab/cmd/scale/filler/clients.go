package main

import (
	"context"
	"fmt"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// client is the client of that number: most are alike but for their name, secret and redirect URI.
func client(i int) clientcfg.Client {
	id := fmt.Sprintf("client-%07d", i)
	return clientcfg.Client{
		ID: id, Name: fmt.Sprintf("Application number %d", i), SecretDigest: secret.DigestOf(id),
		Grants:       []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{fmt.Sprintf("https://app-%d.example.com/oauth/callback", i)},
		Scopes:       []string{"profile", fmt.Sprint("area-", i%50)}, CreatedAt: time.Now().UTC().Truncate(time.Second), Version: 1,
	}
}

// fillStore registers clients, many with one entry of the trail.
func fillStore(ctx context.Context, b store.Backend, n int) error {
	const together = 1000
	f, err := store.NewFollower(ctx, b)
	for first := 0; first < n && err == nil; first += together {
		_, err = f.Append(ctx, func(int64) (entry store.Entry, writes []store.Write, err error) {
			for i := first; i < min(n, first+together) && err == nil; i++ {
				c, w := client(i), store.Write{Table: clientcfg.ClientsTable}
				w.Record, err = clientcfg.EncodeClient(&c)
				writes = append(writes, w)
			}
			return store.Entry{At: time.Now(), Value: []byte("{}")}, writes, err
		})
	}
	return err
}
