package simulate

import (
	"fmt"
	"slices"
	"strings"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/simulate/report"
	"oauth-server/internal/simulate/traffic"
)

// noRequests returns the error for logs without a token request.
func noRequests(logs []string, l *traffic.Lines) error {
	none, formats := "no token requests in "+strings.Join(logs, ", "), formatsOf(l)
	if l.Skipped == 0 || l.Unread > 0 || formats == "" {
		return fmt.Errorf("%s", none)
	}
	return fmt.Errorf("%s (read as %s); if the format is wrong, give --format", none, formats)
}

// formatsOf lists the formats of the logs, each once.
func formatsOf(l *traffic.Lines) string {
	var names []string
	for _, f := range l.Files {
		if f.Format != "" && !slices.Contains(names, f.Format) {
			names = append(names, f.Format)
		}
	}
	return strings.Join(names, " and ")
}

// warn writes warnings about the result to standard error.
func (s *simulation) warn(r *simulate.Result) {
	l := &r.Lines
	s.warnFormats(l)
	s.warnLines(l)
	for _, n := range r.Notes {
		s.Note("%s.", n)
	}
}

// warnFormats reports the format of each log.
func (s *simulation) warnFormats(l *traffic.Lines) {
	if s.format != events.Auto {
		return
	}
	for _, f := range l.Files {
		if f.Format == "" {
			s.Note("%s has nothing to read.", command.Printable(f.Name)) // it is empty, or cut off
			continue
		}
		s.Note("Reading %s as %s.", command.Printable(f.Name), f.Format)
	}
}

// warnLines reports how many entries were skipped, and why some were unreadable. An entry is a
// line, or a value of a JSON document.
func (s *simulation) warnLines(l *traffic.Lines) {
	all := l.Read + l.Skipped + l.Unread
	if l.Read == all {
		return
	}
	text := fmt.Sprintf("Of %d %s, %d %s", all, numberOf(all, "entry", "entries"), l.Read, numberOf(l.Read, "is a token request", "are token requests"))
	if l.Skipped > 0 {
		text += fmt.Sprintf(", %d %s skipped as something else", l.Skipped, numberOf(l.Skipped, "is", "are"))
	}
	if l.Unread == 0 {
		s.Note("%s.", text)
		return
	}
	s.Note("%s, %d cannot be read (%s):", text, l.Unread, report.Percent(float64(l.Unread)/float64(all)))
	const shown = 10
	for i, c := range l.Causes {
		if i == shown {
			s.Note("  … and %d more %s", len(l.Causes)-shown, command.Plural(len(l.Causes)-shown, "cause"))
			break
		}
		s.Note("  %s: %s: %s (%d %s)", command.Printable(c.First), command.Printable(c.Field), command.Printable(c.Problem), c.Lines, numberOf(c.Lines, "entry", "entries"))
	}
}

func numberOf(n uint64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
