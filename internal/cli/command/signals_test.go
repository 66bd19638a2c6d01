package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"oauth-server/internal/check"
)

// TestUntilHangup: the terminal of a server that is closed stops it, and so does what stopped it before.
func TestUntilHangup(t *testing.T) {
	c := &Env{Hangups: make(chan os.Signal, 1)}
	ctx := c.UntilHangup(t.Context())
	check.OK(t, ctx.Err())
	c.Hangups <- syscall.SIGHUP
	<-ctx.Done()

	parent, stop := context.WithCancelCause(t.Context())
	ctx = c.UntilHangup(parent)
	stop(os.ErrClosed)
	<-ctx.Done()
	check.Equal(t, "cause", context.Cause(ctx), os.ErrClosed)
}

// TestUntilHangupUnderNohup: a server that was started to outlive its terminal does so.
func TestUntilHangupUnderNohup(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	c := &Env{}
	c.CatchHangups()
	check.Equal(t, "the context is that of the caller", c.UntilHangup(t.Context()) == t.Context(), true)
}
