package events_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/simulate/traffic"
)

// TestPage: each block of log lines on the page is recognised as the named format, with the --map
// of the block before it. The result must be the next block.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/simulate.md")
	check.OK(t, err)
	blocks := regexp.MustCompile("(?s)\n```([^\n]*)\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	seen := map[events.Format]bool{}
	for i, b := range blocks {
		format, isLog := strings.CutPrefix(b[1], "log ")
		if !isLog {
			continue
		}
		seen[format] = true
		var o events.Options
		if m := regexp.MustCompile(`--map '([^']+)'`).FindStringSubmatch(blocks[i-1][2]); m != nil {
			o.Mapping = mapping(t, m[1])
		}
		o.Stdin = strings.NewReader(b[2])
		check.Equal(t, "requests of "+format, asTable(t, o, format), blocks[i+1][2])
	}
	for _, f := range events.Formats() {
		if f != events.Auto && f != events.Common && !seen[f] {
			t.Errorf("no example of %s", f)
		}
	}
}

// asTable reads a log and formats it as the page does.
func asTable(t *testing.T, o events.Options, format events.Format) string {
	t.Helper()
	r, err := events.Open([]string{"-"}, o)
	check.OK(t, err)
	defer r.Close()
	check.Equal(t, "format", r.Lines().Files[0].Format, format)
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "time\tclient\tuser\tgrant\tsource")
	var q traffic.Request
	for r.Next(&q) {
		failed := ""
		if q.Failed {
			failed = "\tfailed"
		}
		user := q.User
		if q.Unknown {
			user = "(unknown)"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s%s\n", q.At.Format("2006-01-02T15:04:05.999Z07:00"), q.Client, user, q.Grant, q.Source, failed)
	}
	check.OK(t, w.Flush())
	l := r.Lines()
	_, _ = fmt.Fprintf(&out, "%d read, %d skipped, %d unread", l.Read, l.Skipped, l.Unread)
	for _, c := range l.Causes {
		_, _ = fmt.Fprintf(&out, ": %s: %s", c.Field, c.Problem)
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
