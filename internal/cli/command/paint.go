package command

import (
	"io"
	"strings"
	"time"
)

// The runes around a coloured cell. Tables count each as one column, so [painter] adds two spaces
// for them.
const (
	alarmMark  = "\ue000"
	noticeMark = "\ue001"
	endMark    = "\ue002"
)

var paint = strings.NewReplacer(alarmMark, "\x1b[31m", noticeMark, "\x1b[33m", endMark, "\x1b[0m  ")

// painter writes text and replaces its marks by terminal colours.
type painter struct{ io.Writer }

// Write implements [io.Writer]. A mark is never split between two calls, because a table writes
// whole cells.
func (p painter) Write(b []byte) (int, error) {
	if _, err := paint.WriteString(p.Writer, string(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// coloured reports whether output may be coloured: on a terminal, unless NO_COLOR is set
// (no-color.org).
func (c *Env) coloured() bool {
	return c.Terminal && c.Output == OutputText && c.Variable("NO_COLOR") == "" && c.Variable("TERM") != "dumb"
}

// Alarming marks a table cell that needs attention, if does is true.
func (c *Env) Alarming(cell string, does bool) string { return c.marked(alarmMark, cell, does) }

// Notable marks a cell that may need attention, if does is true.
func (c *Env) Notable(cell string, does bool) string { return c.marked(noticeMark, cell, does) }

func (c *Env) marked(mark, cell string, does bool) string {
	if !does || !c.coloured() {
		return cell
	}
	return mark + cell + endMark
}

// DateTime writes a time for a table, in UTC like all times; - for the zero time.
func DateTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
