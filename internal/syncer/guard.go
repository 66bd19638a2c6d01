package syncer

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// restartWait is how long a loop that panicked waits before it begins again.
const restartWait = time.Second

// loop runs f until the context ends, and again whenever it panics.
func (s *Syncer) loop(ctx context.Context, name string, f func(context.Context)) {
	s.loops.Go(func() {
		for {
			s.guarded(ctx, name, f)
			timer := time.NewTimer(restartWait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	})
}

// guarded runs f, and reports and counts a panic in it.
func (s *Syncer) guarded(ctx context.Context, name string, f func(context.Context)) {
	defer func() {
		if v := recover(); v != nil {
			s.stats.panics.Add(1)
			s.cfg.Log.Error("panic in the syncer, restarting", "loop", name,
				"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	f(ctx)
}
