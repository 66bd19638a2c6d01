package app

import (
	"context"
	"log/slog"
	"time"

	"oauth-server/internal/store/mongo"
)

// VerifyOptions say how far [Migrator.Verify] goes.
type VerifyOptions = mongo.VerifyOptions

// Verification is what it found.
type Verification = mongo.Verification

// startWaits bounds what the start waits for the verification: it takes a few
// round trips, beside the rest of the start. Afterwards it continues by itself.
const startWaits = 300 * time.Millisecond

// verifyStore checks in the background, once, that the database does what exact
// counts rest on. It never keeps a server from starting.
func (s *Server) verifyStore(ctx context.Context) {
	store, ok := s.store.(interface {
		VerifyCounters(ctx context.Context) (Verification, error)
	})
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	s.verified = done
	go func() {
		defer close(done)
		_ = s.loops.Guard(ctx, "verification", func(ctx context.Context) error {
			found, err := store.VerifyCounters(ctx)
			if ctx.Err() == nil {
				s.reportVerification(ctx, found, err)
			}
			return nil
		})
	}()
	s.undo.push("the verification of the database", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

// reportVerification logs what failed, also where the checks ended early or left
// their documents behind.
func (s *Server) reportVerification(ctx context.Context, found Verification, err error) {
	var failed []string
	for _, c := range found.Inexact() {
		if c.Status != mongo.CheckUnchecked {
			failed = append(failed, c.Name+": "+c.Detail)
		}
	}
	var attrs []slog.Attr
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	switch {
	case len(failed) > 0:
		attrs = append(attrs, slog.Any("failed", failed))
		s.log.LogAttrs(ctx, slog.LevelWarn, "database verification failed, counts may not be exact; see oauth-server migrate verify", attrs...)
	case err != nil:
		s.log.LogAttrs(ctx, slog.LevelInfo, "database verification incomplete; oauth-server migrate verify runs it by hand", attrs...)
	}
}

// awaitVerification gives the verification a moment, so that its warning stands
// before the line that says that the server answers.
func (s *Server) awaitVerification(ctx context.Context) {
	if s.verified == nil {
		return
	}
	timer := time.NewTimer(startWaits)
	defer timer.Stop()
	select {
	case <-s.verified:
	case <-timer.C:
	case <-ctx.Done():
	}
}
