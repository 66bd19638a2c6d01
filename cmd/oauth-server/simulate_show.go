package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/report"
)

// shownClients is the number of clients in the table without --top.
const shownClients = 20

// cut removes the clients beyond the number to show.
func (s *simulation) cut(r *simulate.Result) {
	most := s.top
	if most == 0 && s.output == outputText {
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
	if err := s.table(s.clientRows(r)...); err != nil {
		return err
	}
	var text strings.Builder
	if r.MoreClients > 0 {
		fmt.Fprintf(&text, "… and %d more %s\n", r.MoreClients, plural(r.MoreClients, "client"))
	}
	fmt.Fprintf(&text, "\nOf %d %s of %d %s, from %s to %s, %s under %s.\n",
		r.Total.Requests, plural(int(min(r.Total.Requests, 2)), "request"), r.ClientCount, plural(r.ClientCount, "client"), dateTime(r.From), dateTime(r.To), refusedText(r), r.Under)
	if _, err := fmt.Fprint(s.out, text.String()); err != nil {
		return err
	}
	if len(r.WhatIf) > 0 {
		if err := s.table(append([][]string{{""}}, s.whatIfRows(r.WhatIf)...)...); err != nil {
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

// refusedText says in a sentence how many requests are refused, and which clients sent them.
func refusedText(r *simulate.Result) string {
	n := r.Total.Refused()
	if n == 0 {
		return "none is refused"
	}
	are := "are"
	if n == 1 {
		are = "is"
	}
	users := int(min(r.UsersHit, 2))
	return fmt.Sprintf("%d %s refused, of %d %s and %s %s", n, are, r.ClientsHit, plural(r.ClientsHit, "client"),
		about(r.UsersHit, r.UsersEstimated), plural(users, "user"))
}

// column is a column of a table of counts. An empty column is left out.
type column struct {
	name  string
	count func(*simulate.Counts) uint64
}

var rareColumns = []column{
	{"DELAYED", func(c *simulate.Counts) uint64 { return c.Delayed }},
	{"REUSED", func(c *simulate.Counts) uint64 { return c.Reused }},
	{"BANNED", func(c *simulate.Counts) uint64 { return c.Banned }},
	{"FAILED", func(c *simulate.Counts) uint64 { return c.Failed }},
}

// filled returns the columns that are not empty.
func filled(total *simulate.Counts) (columns []column) {
	for _, c := range rareColumns {
		if c.count(total) > 0 {
			columns = append(columns, c)
		}
	}
	return columns
}

func (s *simulation) clientRows(r *simulate.Result) [][]string {
	rare := filled(&r.Total)
	heading := []string{"CLIENT", "REQUESTS", "ADMITTED", "DENIED"}
	for _, c := range rare {
		heading = append(heading, c.name)
	}
	rows := [][]string{append(heading, "REFUSED", "USERS HIT", "WORST MINUTE", "BLOCKED", "WAIT", "WASTED")}
	for i := range r.Clients {
		c := &r.Clients[i]
		row := []string{shortened(c.ClientID), number(c.Requests), number(c.Admitted), s.alarming(number(c.Denied), c.Denied > 0)}
		for _, column := range rare {
			row = append(row, number(column.count(&c.Counts)))
		}
		worst := "-"
		if m := c.WorstMinute; m != nil {
			worst = fmt.Sprintf("%s: %d of %d", m.At.Format("2006-01-02T15:04Z"), m.Refused, m.Requests)
		}
		rows = append(rows, append(row, report.Percent(c.RefusedShare), about(c.UsersHit, c.UsersEstimated), worst,
			seconds(c.LongestBlocked), seconds(c.LongestWait), report.Percent(c.WastedShare)))
	}
	return withoutDashes(rows)
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

// withoutDashes removes columns with only "-" below their heading.
func withoutDashes(rows [][]string) [][]string {
	for i := len(rows[0]) - 1; i >= 0; i-- {
		if slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "-" }) {
			continue
		}
		for j := range rows {
			rows[j] = slices.Delete(rows[j], i, i+1)
		}
	}
	return rows
}

func about(n uint64, estimated bool) string {
	if estimated {
		return "~" + number(n)
	}
	return number(n)
}

// seconds writes a duration for a table, or - for a missing one.
func seconds(d simulate.Seconds) string {
	switch t := d.Duration(); {
	case t == 0:
		return "-"
	case t < 10*time.Second:
		return t.Round(time.Millisecond).String()
	default:
		return t.Round(time.Second).String()
	}
}

func (s *simulation) whatIfRows(all []simulate.WhatIf) [][]string {
	var total simulate.Counts
	for i := range all {
		total.Delayed += all[i].Delayed
		total.Reused += all[i].Reused
		total.Banned += all[i].Banned
	}
	rare := filled(&total)
	heading := []string{"LIMIT", "CLIENTS HIT", "USERS HIT", "DENIED"}
	for _, c := range rare {
		heading = append(heading, c.name)
	}
	rows := [][]string{append(heading, "REFUSED")}
	for i := range all {
		w := &all[i]
		row := []string{
			w.Limit, fmt.Sprintf("%d of %d", w.ClientsHit, w.ClientCount), about(w.UsersHit, w.UsersEstimated), s.alarming(number(w.Denied), w.Denied > 0),
		}
		for _, c := range rare {
			row = append(row, number(c.count(&w.Counts)))
		}
		rows = append(rows, append(row, report.Percent(w.RefusedShare)))
	}
	return rows
}

// shownOutstanding is the number of clients shown that a limit would deny.
const shownOutstanding = 10

func (s *simulation) showTarget(t *simulate.Target) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s is the lowest limit of its kind that leaves %s of the %s untouched: %s of %s.\n",
		t.Limit, report.ExactPercent(t.Share), t.Of, number(t.Untouched), number(t.Count))
	if len(t.Days) > 0 {
		lowest := slices.IndexFunc(t.Days, func(d simulate.Day) bool { return d.Requests == t.Min })
		fmt.Fprintf(&text, "Without any one of the %d days of the log it is %d", len(t.Days), t.Min)
		if t.Min < t.Max {
			fmt.Fprintf(&text, " to %d: the lowest without %s", t.Max, t.Days[lowest].Without)
		}
		text.WriteString(".\n")
	}
	if len(t.Outstanding) > 0 {
		text.WriteString("It denies requests of these clients:\n")
	}
	if _, err := fmt.Fprint(s.out, text.String()); err != nil || len(t.Outstanding) == 0 {
		return err
	}
	rows := [][]string{{"CLIENT", "NEEDS", "REQUESTS"}}
	shown := t.Outstanding[:min(len(t.Outstanding), shownOutstanding)]
	for _, c := range shown {
		rows = append(rows, []string{shortened(c.ClientID), strconv.FormatInt(c.Needs, 10), number(c.Requests)})
	}
	if err := s.table(rows...); err != nil {
		return err
	}
	if n := len(t.Outstanding) - len(shown) + t.MoreOutstanding; n > 0 {
		_, err := fmt.Fprintf(s.out, "… and %d more\n", n)
		return err
	}
	return nil
}
