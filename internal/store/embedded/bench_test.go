package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// Each operation is durable when it returns, so the figures hold for the disk
// that the temporary directory is on. The 64 clients of one process must reach
// at least 8 times the throughput of one:
//
//	go test -run=^$ -bench=. ./internal/store/embedded

var benchClients = []int{1, 64}

func benchAuthorization() grants.Authorization {
	return grants.Authorization{
		ClientID: "mobile-app", Username: "alice@example.com", Scopes: []string{"openid", "read", "write"},
		Family: secret.ID(), AuthTime: time.Unix(1_700_000_000, 0),
	}
}

func benchCode(now time.Time) grants.Code {
	return grants.Code{
		Authorization: benchAuthorization(), Digest: secret.DigestOf(secret.New()),
		RedirectURI: "https://client.example.com/callback", Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
		IssuedAt: now, ExpiresAt: now.Add(time.Minute),
	}
}

func benchToken(now time.Time) grants.RefreshToken {
	return grants.RefreshToken{
		Authorization: benchAuthorization(), Digest: secret.DigestOf(secret.New()),
		IssuedAt: now, ExpiresAt: now.Add(30 * 24 * time.Hour),
	}
}

// benchStore is a store in use: so many refresh tokens are in it already.
func benchStore(b *testing.B, tokens int) *Store {
	b.Helper()
	s, err := Open(filepath.Join(b.TempDir(), "bench.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	now := time.Now()
	share(b, 256, tokens, func(ctx context.Context) error { return s.CreateRefreshToken(ctx, benchToken(now)) })
	return s
}

// share lets so many clients do n operations between them.
func share(b *testing.B, clients, n int, do func(ctx context.Context) error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan error, clients)
	for range clients {
		go func() {
			for left.Add(-1) >= 0 {
				if err := do(b.Context()); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedeemCode(b *testing.B) {
	for _, clients := range benchClients {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s, now := benchStore(b, 20_000), time.Now()
			issued := make([]grants.Code, b.N)
			for i := range issued {
				issued[i] = benchCode(now)
			}
			var n atomic.Int64
			share(b, 256, b.N, func(ctx context.Context) error { return s.CreateCode(ctx, issued[n.Add(1)-1]) })
			n.Store(0)
			b.ResetTimer()
			share(b, clients, b.N, func(ctx context.Context) error {
				c, err := s.Code(ctx, issued[n.Add(1)-1].Digest)
				if err != nil {
					return err
				}
				next := benchToken(now)
				return s.RedeemCode(ctx, c.Digest, &next)
			})
		})
	}
}

func BenchmarkRotateRefreshToken(b *testing.B) {
	for _, clients := range benchClients {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s, now := benchStore(b, 20_000), time.Now()
			owned := make(chan secret.Digest, clients)
			for range clients {
				t := benchToken(now)
				if err := s.CreateRefreshToken(b.Context(), t); err != nil {
					b.Fatal(err)
				}
				owned <- t.Digest
			}
			b.ResetTimer()
			share(b, clients, b.N, func(ctx context.Context) error {
				t, err := s.RefreshToken(ctx, <-owned)
				if err != nil {
					return err
				}
				next := benchToken(now)
				err = s.RotateRefreshToken(ctx, t.Digest, next)
				owned <- next.Digest
				return err
			})
		})
	}
}

func BenchmarkCreateCode(b *testing.B) {
	for _, clients := range benchClients {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			s, now := benchStore(b, 20_000), time.Now()
			b.ResetTimer()
			share(b, clients, b.N, func(ctx context.Context) error { return s.CreateCode(ctx, benchCode(now)) })
		})
	}
}
