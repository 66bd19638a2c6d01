package command

import (
	"bytes"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestTableIsPrintable: what cannot be printed is written out, in cells and in differences. The marks of colours stay.
func TestTableIsPrintable(t *testing.T) {
	var out bytes.Buffer
	c := &Env{Out: &out}
	check.OK(t, c.Table([]string{"x\t99\n100 y\u202e", "\x1b[31mé"}, []string{alarmMark + "1" + endMark, "b"}))
	check.Equal(t, "table", out.String(), `x\t99\n100 y\u202e  \x1b[31mé`+"\n\x1b[31m1\x1b[0m                   b\n")
}

// What is coloured takes no place, so that the columns stay in line.
func TestColoursKeepColumns(t *testing.T) {
	var out bytes.Buffer
	c := &Env{Out: &out, Terminal: true, Output: OutputText}
	check.OK(t, c.Table([]string{"A", "B"}, []string{c.Alarming("1", true), "x"}, []string{"22", "y"}, []string{c.Notable("333", true), "z"}))
	text := strings.NewReplacer("\x1b[31m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(out.String())
	for line := range strings.Lines(text) {
		if at := strings.IndexAny(line, "Bxyz"); at != 7 {
			t.Errorf("the second column is at %d in %q", at, line)
		}
	}
}
