package grants_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

// BenchmarkClientCredentials compares a whole request through the service with a bare signature,
// the one step that it cannot avoid.
func BenchmarkClientCredentials(b *testing.B) {
	b.Run("bare ES256", func(b *testing.B) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check.OK(b, err)
		digest := sha256.Sum256(make([]byte, 300))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ecdsa.SignASN1(rand.Reader, key, digest[:]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("service", func(b *testing.B) {
		w := newWorld(b)
		req := grants.TokenRequest{Credentials: w.credentials("shop"), GrantType: "client_credentials"}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.service.Token(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLimiter measures the same request with and without the limiter.
func BenchmarkLimiter(b *testing.B) {
	settings := ratelimit.DefaultSettings()
	settings.Default.Client[0].Requests = ratelimit.MaxRequests
	policies := testworld.Policies(b, settings, clientcfg.PolicySet{})
	on := func(o *grants.Options) {
		o.Counters = ratelimit.NewCounters(0)
		o.Policies = func() *clientcfg.PolicySnapshot { return policies }
	}
	for name, edit := range map[string]func(*grants.Options){"off": func(*grants.Options) {}, "on": on} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, edit)
			req := grants.TokenRequest{Credentials: w.credentials("shop"), GrantType: "client_credentials"}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.service.Token(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
