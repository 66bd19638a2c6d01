package observed_test

import (
	"context"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

// BenchmarkEnter measures a call that does not have to wait.
func BenchmarkEnter(b *testing.B) {
	for name, least := range map[string]int{"fixed": 0, "adaptive": 20} {
		b.Run(name, func(b *testing.B) {
			l := storequeue.New(storequeue.Options{Max: 80, Min: least, Mode: ratelimit.Enforce})
			ctx := storequeue.NewRequest(context.Background())
			b.ReportAllocs()
			for b.Loop() {
				pass, err := l.Enter(ctx)
				check.OK(b, err)
				pass.Leave(true)
			}
		})
	}
}
