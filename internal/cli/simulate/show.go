package simulate

import (
	"fmt"
	"slices"
	"strings"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/report"
)

// shownClients is the number of clients in the table without --top.
const shownClients = 20

// cut removes the clients beyond the number to show.
func (s *simulation) cut(r *simulate.Result) {
	most := s.top
	if most == 0 && s.Output == command.OutputText {
		most = shownClients
	}
	if n := len(r.Clients) - most; most > 0 && n > 0 {
		r.Clients, r.MoreClients = r.Clients[:most], r.MoreClients+n
	}
}

// show writes the result for a person.
func (s *simulation) show(r *simulate.Result) error {
	if r.ClientCount == 0 {
		return nil // the error says everything
	}
	if err := s.print(report.Clients(r, len(r.Clients))); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.Out, "\n%s\n", report.Sentence(r)); err != nil {
		return err
	}
	if len(r.WhatIf) > 0 {
		_, _ = fmt.Fprintln(s.Out) // the table has the same error
		if err := s.print(report.WhatIf(r.WhatIf)); err != nil {
			return err
		}
	}
	for i := range r.Targets {
		if err := s.showTarget(&r.Targets[i]); err != nil {
			return err
		}
	}
	return nil
}

// print writes a table of the result, and what it leaves out.
func (s *simulation) print(t *report.Table) error {
	var heading []string
	for _, c := range t.Columns {
		heading = append(heading, strings.ToUpper(c.Name))
	}
	rows := [][]string{heading}
	for _, r := range t.Rows {
		var cells []string
		for _, c := range r.Cells {
			cells = append(cells, s.Alarming(c.Text, c.Alarm))
		}
		cells[0] = shortened(cells[0])
		rows = append(rows, cells)
	}
	err := s.Table(rows...)
	if err == nil && t.More != "" {
		_, err = fmt.Fprintln(s.Out, t.More)
	}
	return err
}

// shortened removes the middle of a name that would make a table too wide.
func shortened(name string) string {
	const most, tail = 60, 20
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	return string(runes[:most-tail-1]) + "…" + string(runes[len(runes)-tail:])
}

// shownOutstanding is the number of clients shown that a limit would deny.
const shownOutstanding = 10

func (s *simulation) showTarget(t *simulate.Target) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s is the lowest limit that leaves %s of the %s untouched: %s of %s.\n",
		t.Limit, report.ExactPercent(t.Share), t.Of, command.Number(t.Untouched), command.Number(t.Count))
	if len(t.Days) > 0 {
		lowest := slices.IndexFunc(t.Days, func(d simulate.Day) bool { return d.Requests == t.Min })
		fmt.Fprintf(&text, "Leaving out any one of the %d days, it is %d", len(t.Days), t.Min)
		if t.Min < t.Max {
			fmt.Fprintf(&text, " to %d; the lowest without %s", t.Max, t.Days[lowest].Without)
		}
		text.WriteString(".\n")
	}
	if len(t.Outstanding) > 0 {
		text.WriteString("It denies requests of these clients:\n")
	}
	if _, err := fmt.Fprint(s.Out, text.String()); err != nil || len(t.Outstanding) == 0 {
		return err
	}
	return s.print(report.Outstanding(t, shownOutstanding))
}
