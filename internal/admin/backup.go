package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"oauth-server/internal/admin/guard"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/clientcfg"
)

// Backups copies and restores the data file of an embedded store.
type Backups interface {
	// Copy writes the current data file. It calls begin with the size before the first byte. An
	// error of begin ends the copy. A later error means that the copy is incomplete.
	Copy(ctx context.Context, w io.Writer, begin func(size int64) error) error
	// Restore replaces the data file by the file with that name beside it, after this request has
	// been answered. An error means that it will not be replaced, and why.
	Restore(ctx context.Context, name string) error
}

// holder returns an error unless the caller has the key beside the data file. A scope is not
// enough, because a backup is as sensitive as the data file itself.
func (s *Server) holder(c *call) error {
	switch {
	case s.o.Backups == nil:
		return problem.Conflict("this store is not a data file; back up a database with its own tools, such as mongodump")
	case c.caller.Store == "":
		return guard.Forbidden("Local command only", "this needs the key beside the data file: run oauth-server backup or restore on the machine of the server",
			`error_description="this needs the key beside the data file"`)
	}
	return nil
}

// backupStalls is how long the reader of a backup may stall, because the copy pins pages of the
// data file.
const backupStalls = 10 * time.Second

// backup sends a copy of the data file. If the copy ends early, the connection is closed before the
// length in the header is reached.
func (s *Server) backup(c *call) error {
	if err := s.holder(c); err != nil {
		return err
	}
	r, err := s.registrar(c, "")
	if err != nil {
		return err
	}
	if !s.copying.CompareAndSwap(false, true) {
		return problem.Conflict("another backup is running")
	}
	defer s.copying.Store(false)
	ctx := c.Request().Context()
	out := &patient{Writer: c.Response(), deadlines: http.NewResponseController(c.Response())}
	// If the copy ends early, a part of it was still handed out: the event says that.
	err = r.registry.Record(ctx, clientcfg.BackupAction, clientcfg.StoreTarget, nil, nil, func() error {
		return s.o.Backups.Copy(ctx, out, func(size int64) error {
			h := c.Response().Header()
			h.Set("Content-Type", "application/octet-stream")
			h.Set("Content-Length", strconv.FormatInt(size, 10))
			c.Response().WriteHeader(http.StatusOK)
			return nil
		})
	})
	if err == nil {
		s.log.LogAttrs(ctx, slog.LevelInfo, "data file backed up", slog.String("by", c.caller.Store), slog.Int64("bytes", c.Response().Size))
	} else if c.Response().Committed {
		s.log.LogAttrs(ctx, slog.LevelWarn, "backup ended early", slog.Int64("bytes", c.Response().Size), slog.Any("error", err))
		c.outcome = "cut-off"
		return nil
	}
	return err
}

// patient is a writer to a client that may stall only for a limited time.
type patient struct {
	io.Writer
	deadlines *http.ResponseController
}

// Write implements [io.Writer].
func (p *patient) Write(b []byte) (int, error) {
	if err := p.deadlines.SetWriteDeadline(time.Now().Add(backupStalls)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.Writer.Write(b)
}

// restore replaces the data file by a file prepared beside it. The server stops serving for that
// and restarts, so the caller sees the outcome afterwards.
func (s *Server) restore(c *call) error {
	if err := s.holder(c); err != nil {
		return err
	}
	r, err := s.registrar(c, "")
	if err != nil {
		return err
	}
	var refused error
	err = r.registry.Restoring(c.lasting(), func() error {
		refused = s.o.Backups.Restore(c.lasting(), c.query.Get("file"))
		return refused
	})
	switch {
	case refused != nil:
		return problem.Conflict("the data file was not restored: %v", refused)
	case err != nil:
		return err
	}
	c.Response().WriteHeader(http.StatusAccepted)
	return nil
}
