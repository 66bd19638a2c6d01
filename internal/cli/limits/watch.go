package limits

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/background"
	"oauth-server/internal/cli/command"
)

// watchEvery is the time between two views of --watch.
const watchEvery = 2 * time.Second

// clearScreen moves the cursor to the top left and clears the screen. The scrollback stays.
const clearScreen = "\x1b[H\x1b[2J"

// watched adds --watch to a command that shows something.
func (l *limits) watched(cmd *cobra.Command) *cobra.Command {
	var watch bool
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "refresh every two seconds, until interrupted")
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !watch {
			return once(cmd, args)
		}
		return l.watch(cmd.Context(), func() error { return once(cmd, args) })
	}
	return cmd
}

// watch shows a view repeatedly. On a terminal, each view replaces the previous one; otherwise an
// empty line separates them. The first view must succeed. Later errors are shown in place of a
// view.
func (l *limits) watch(ctx context.Context, once func() error) error {
	out, pause := l.Out, l.Pause
	if pause == nil {
		pause = background.Sleep
	}
	defer func() { l.Out = out }()
	for shown := false; ; shown = true {
		var view bytes.Buffer
		l.Out = &view
		if err := once(); err != nil {
			if !shown {
				return err
			}
			view.Reset()
			view.WriteString("oauth-server: " + err.Error() + "\n")
		}
		before := ""
		switch {
		case l.Output != command.OutputText:
		case l.Terminal:
			before = clearScreen + command.DateTime(time.Now()) + ", every " + watchEvery.String() + "\n\n"
		case shown:
			before = "\n"
		}
		if _, err := io.WriteString(out, before+view.String()); err != nil {
			return err
		}
		if !pause(ctx, watchEvery) {
			return nil
		}
	}
}
