package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/grants"
)

// Run serves until ctx ends, then stops gracefully: it takes no new requests,
// answers those it has, writes the counts that are left, stops the background
// loops and closes the store, all within the configured time. It returns nil after a clean stop.
func (s *Server) Run(ctx context.Context) error {
	live := context.WithoutCancel(ctx) // what ends with the teardown, not before
	failed := make(chan error, 2)
	s.serveOperators(live, failed)
	s.startLoops()
	s.startSyncer(live)
	s.serve(failed)
	s.awaitVerification(ctx)
	s.log.LogAttrs(ctx, slog.LevelInfo, "listening", s.describe()...)
	if s.opts.Listening != nil {
		s.opts.Listening(s)
	}
	var err error
	select {
	case <-ctx.Done():
		s.stopping.Store(true)
		s.log.LogAttrs(live, slog.LevelInfo, "stopping", slog.String("within", s.cfg.ShutdownTimeout.Std().String()))
	case err = <-failed:
	}
	err = errors.Join(err, s.stop(live))
	if err == nil {
		s.log.LogAttrs(live, slog.LevelInfo, "stopped")
	}
	return err
}

// Close gives up a server that was made and never run.
func (s *Server) Close() error { return s.stop(context.Background()) }

// stop undoes the start within the configured time. What does not end in time
// is said, and is no failure: the process is about to end, and whatever was
// answered is durable.
func (s *Server) stop(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, s.cfg.ShutdownTimeout.Std())
	defer cancel()
	late, err := s.undo.run(within)
	if len(late) > 0 {
		s.log.LogAttrs(ctx, slog.LevelWarn, "not everything stopped in time", slog.Any("left", late))
	}
	return err
}

// startLoops starts the background work; it is stopped after the last request
// was answered and before the store closes.
func (s *Server) startLoops() {
	for _, task := range s.tasks() {
		s.loops.Repeat(task)
	}
	s.loops.Go("policy changes", func(ctx context.Context) error { return s.policies.Watch(ctx, s.log) })
	s.loops.Go("resets", s.resets.Run)
	s.undo.push("background loops", func(context.Context) error {
		s.loops.Cancel()
		s.loops.Wait()
		return nil
	})
}

// tasks lists what is repeated while the server runs.
func (s *Server) tasks() []background.Task {
	const keep = "refresh failed; keeping last good snapshot"
	tasks := []background.Task{
		{Name: "signing keys", Every: s.keys.CheckEvery(), Do: s.keys.Maintain, Failed: keep},
		{Name: "clients", Every: clientsRefreshEvery, Do: s.clients.Refresh, Failed: keep},
		{Name: "policies", Every: policiesRefreshEvery, Do: s.policies.Refresh, Failed: keep},
		{
			Name: "audit sweep", Every: time.Hour, Retry: time.Minute, First: true, Do: s.admin.SweepAudit,
			Failed: "audit sweep failed; old entries stay",
		},
	}
	if sweeper, ok := s.store.(grants.Sweeper); ok {
		tasks = append(tasks, background.Task{
			Name: "sweep", Every: sweepEvery, Do: sweep(sweeper, s.clock.Now, s.log), Failed: "sweep failed; expired entries stay",
		})
	}
	if s.cert != nil {
		tasks = append(tasks, background.Task{
			Name: "certificate", Every: certificateCheck, Do: s.cert.reload, Failed: "certificate reload failed; keeping last good certificate",
		})
	}
	return tasks
}

// serve answers requests in the background. It reports an end that nobody
// asked for.
func (s *Server) serve(failed chan<- error) {
	go func() {
		var err error
		if s.cert != nil {
			s.http.TLSConfig = s.cert.config()
			err = s.http.ServeTLS(s.listener, "", "")
		} else {
			err = s.http.Serve(s.listener)
		}
		if !errors.Is(err, http.ErrServerClosed) && !s.farewell.begun.Load() {
			failed <- err
		}
	}()
	s.undo.push("serving", s.drain)
}

// drain takes no new connections, so that their peers turn to another instance,
// and waits for the requests that are under way. It leaves a quarter of the time to
// what is stopped after it, and then cuts off who is still there: a peer that
// reads slowly must not keep counts from being written.
func (s *Server) drain(ctx context.Context) error {
	ctx, cancel := most(ctx)
	defer cancel()
	s.farewell.begun.Store(true)
	failed := closed(s.listener)
	s.farewell.say(ctx)
	s.farewell.dismiss()
	err := s.http.Shutdown(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		s.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "cutting off requests that would not end")
		err = s.http.Close()
	case errors.Is(err, net.ErrClosed): // the listener, above
		err = nil
	}
	return errors.Join(failed, err)
}
