package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"oauth-server/internal/app"
)

// UntilSignal returns a context that ends at the first SIGTERM, SIGINT or signal in others. SIGTERM
// has the cause [app.ErrTerminated]. A second signal kills the process at once, because the handler
// is removed.
func UntilSignal(parent context.Context, others ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	for _, other := range others {
		if !signal.Ignored(other) { // as nohup ignores SIGHUP
			signal.Notify(signals, other)
		}
	}
	go func() {
		var cause error
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				cause = app.ErrTerminated
			}
		case <-ctx.Done():
		}
		signal.Stop(signals)
		cancel(cause)
	}()
	return ctx, func() { cancel(nil) }
}

// CatchHangups makes SIGHUP reload the configuration file, and no longer end the process. A signal
// during startup is kept until the server can reload.
func (c *Env) CatchHangups() {
	if c.Hangups == nil {
		c.nohup = signal.Ignored(syscall.SIGHUP)
		c.Hangups = make(chan os.Signal, 1)
		signal.Notify(c.Hangups, syscall.SIGHUP)
	}
}

// UntilHangup returns a context that also ends at the first SIGHUP, for a server in a terminal that may be
// closed. A second one kills the process at once. If the process began with SIGHUP ignored, as under nohup,
// it is ignored again.
func (c *Env) UntilHangup(parent context.Context) context.Context {
	if c.nohup {
		signal.Stop(c.Hangups)
		return parent
	}
	ctx, cancel := context.WithCancel(parent)
	go func() {
		defer cancel()
		select {
		case <-c.Hangups:
		case <-ctx.Done():
		}
		signal.Stop(c.Hangups)
	}()
	return ctx
}
