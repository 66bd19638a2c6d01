package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
)

// mostCommands is how many commands there may be, without groups, topics and cobra's own.
const mostCommands = 55

// TestHelp: there are not too many commands, each help text fits on one screen, and each command
// has two examples, of itself.
func TestHelp(t *testing.T) {
	count := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if !cmd.Runnable() { // a topic
			return
		}
		var b bytes.Buffer
		cmd.SetOut(&b)
		command.Help(cmd, nil)
		if n := strings.Count(b.String(), "\n"); n > 40 {
			t.Errorf("%s: %d lines", cmd.CommandPath(), n)
		}
		for line := range strings.Lines(b.String()) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 100 {
				t.Errorf("%s: this line is too long: %s", cmd.CommandPath(), line)
			}
		}
		if cmd.HasSubCommands() {
			return
		}
		count++
		if n := strings.Count(cmd.Example, cmd.CommandPath()); n < 2 {
			t.Errorf("%s: %d examples", cmd.CommandPath(), n)
		}
	}
	root, _ := newRoot(&command.Env{})
	visit(root)
	if count > mostCommands {
		t.Errorf("there are %d commands", count)
	}
	t.Logf("%d commands", count)
}
