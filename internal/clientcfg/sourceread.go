package clientcfg

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// followEvery is how often changes are followed while all clients are read, as a server does otherwise.
const followEvery = time.Second

// readFirst reads the first directory.
func (s *Source) readFirst(ctx context.Context) error {
	asked, none := time.Now(), &Directory{}
	e, mark, err := readClients(ctx, s.store, none, &s.known)
	if err != nil {
		return err
	}
	s.use(ctx, none, e.directory(mark))
	s.checked.Store(&asked)
	return nil
}

// catchUp reads all clients because the mark of the directory is lost. Until that is done, the directory
// follows what changes from now on, and is not the newest.
func (s *Source) catchUp(ctx context.Context) error {
	asked := time.Now()
	mark, err := s.store.ClientsMark(ctx)
	if err != nil {
		return fmt.Errorf("clientcfg: read mark of clients: %w", err)
	}
	s.behind = true
	old := s.current.Load()
	s.use(ctx, old, old.edit(&s.known).directory(mark))
	if err := s.readAll(ctx); err != nil {
		return err
	}
	s.behind = false
	s.checked.Store(&asked) // as the mark: a request that needs a newer directory follows from there
	return nil
}

// readAll reads all clients, and makes them the directory in use, which has followed the changes
// meanwhile. What has changed since the read began is taken from that: the read may have been earlier.
// What changes later is after its mark. All else is as it was read.
func (s *Source) readAll(ctx context.Context) error {
	s.meanwhile = map[string]struct{}{}
	defer func() { s.meanwhile = nil }()
	known := s.known.clone() // the original follows
	e, err := s.readBeside(ctx, known)
	if err != nil {
		return err
	}
	now := s.current.Load()
	for id := range s.meanwhile {
		e.copy(id, now)
	}
	s.known = *known
	s.use(ctx, now, e.directory(now.mark))
	return nil
}

// readBeside reads all clients without the turn, and follows what changes until that is done.
func (s *Source) readBeside(ctx context.Context, known *shapes) (*directoryEdit, error) {
	old := s.current.Load()
	s.release()
	defer func() { s.turn <- struct{}{} }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		e        *directoryEdit
		err      error
		panicked string
	}
	read := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if v := recover(); v != nil { // the caller may survive it
				r.panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
			}
			read <- r
		}()
		r.e, _, r.err = readClients(ctx, s.store, old, known)
	}()
	follow := time.NewTicker(followEvery)
	defer follow.Stop()
	for {
		select {
		case r := <-read:
			if r.panicked != "" {
				panic(r.panicked)
			}
			return r.e, r.err
		case <-follow.C:
			s.followBeside(ctx)
		}
	}
}

// followBeside follows what has changed. If it cannot, CheckedAt stays as it is, and the next
// call does it.
func (s *Source) followBeside(ctx context.Context) {
	if s.take(ctx) != nil {
		return
	}
	defer s.release()
	_, _ = s.follow(ctx, s.current.Load())
}

// use makes the next directory the one in use.
func (s *Source) use(ctx context.Context, old, next *Directory) {
	s.current.Store(next)
	if next != old {
		s.logUnreadable(ctx, old, next)
	}
}
