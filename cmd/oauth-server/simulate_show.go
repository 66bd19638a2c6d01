package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
)

// shownClients is how many clients the table has, unless --top says so.
const shownClients = 20

// cut leaves out the clients that are not to be shown.
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
		return nil // what there is to say is an error
	}
	if err := s.table(s.clientRows(r)...); err != nil {
		return err
	}
	var text strings.Builder
	if r.MoreClients > 0 {
		fmt.Fprintf(&text, "… and %d more %s\n", r.MoreClients, plural(r.MoreClients, "client"))
	}
	fmt.Fprintf(&text, "\nOf %d %s of %d %s, from %s to %s, %s under %s.\n",
		r.Total.Requests, plural(int(min(r.Total.Requests, 2)), "request"), r.ClientCount, plural(r.ClientCount, "client"), dateTime(r.From), dateTime(r.To), refusedText(r), s.under())
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

// refusedText is how many requests are refused, and of whom, in a sentence.
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

// under is what the requests were judged under, in a sentence.
func (s *simulation) under() string {
	switch files := s.files; {
	case files.limits != "" && files.config != "":
		return "the limits of " + printable(files.limits) + " and " + printable(files.config)
	case files.limits != "" || files.config != "":
		return "the limits of " + printable(files.limits+files.config)
	}
	return "the limits that are built in, " + showLimit(adminapi.ShowLimit(ratelimit.DefaultLimit()))
}

// column is a column of a table of counts, which is left out if it is empty.
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

// filled are the columns that are not empty.
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
	rows := [][]string{append(heading, "REFUSED", "USERS HIT", "WORST MINUTE", "LONGEST BLOCKED", "LONGEST WAIT", "WASTED")}
	for i := range r.Clients {
		c := &r.Clients[i]
		row := []string{c.ClientID, number(c.Requests), number(c.Admitted), s.alarming(number(c.Denied), c.Denied > 0)}
		for _, column := range rare {
			row = append(row, number(column.count(&c.Counts)))
		}
		worst := "-"
		if m := c.WorstMinute; m != nil {
			worst = fmt.Sprintf("%s: %d of %d", m.At.Format("2006-01-02T15:04Z"), m.Refused, m.Requests)
		}
		rows = append(rows, append(row, percent(c.RefusedShare), about(c.UsersHit, c.UsersEstimated), worst,
			seconds(c.LongestBlocked), seconds(c.LongestWait), percent(c.WastedShare)))
	}
	return rows
}

func about(n uint64, estimated bool) string {
	if estimated {
		return "~" + number(n)
	}
	return number(n)
}

// percent writes a share. One that is not 0 is not written as 0, and one that is not whole not as 100.
func percent(share float64) string {
	text := strconv.FormatFloat(100*share, 'f', 2, 64)
	switch {
	case share == 0 || share == 1:
	case text == "0.00":
		return "<0.01%"
	case text == "100.00":
		return ">99.99%"
	}
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + "%"
}

// seconds writes a time for a table; - for none.
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
		rows = append(rows, append(row, percent(w.RefusedShare)))
	}
	return rows
}

// shownOutstanding is how many clients that a limit would deny are shown.
const shownOutstanding = 10

func (s *simulation) showTarget(t *simulate.Target) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s is the lowest limit of its kind that leaves %s of the %s untouched: %s of %s.\n",
		t.Limit, percent(t.Share), t.Of, number(t.Untouched), number(t.Count))
	if len(t.Days) > 0 {
		lowest := slices.IndexFunc(t.Days, func(d simulate.Day) bool { return d.Requests == t.Min })
		fmt.Fprintf(&text, "Without any one of the %d days of the log it is %d to %d", len(t.Days), t.Min, t.Max)
		if t.Min < t.Max {
			fmt.Fprintf(&text, ": the lowest without %s", t.Days[lowest].Without)
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
		rows = append(rows, []string{c.ClientID, strconv.FormatInt(c.Needs, 10), number(c.Requests)})
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

// warn writes what a person should know to standard error.
func (s *simulation) warn(r *simulate.Result) {
	l := &r.Lines
	if s.format == "auto" {
		for _, f := range l.Files {
			if f.Format == "" {
				s.note("There is nothing to read in %s.", printable(f.Name)) // it is empty, or cut off
				continue
			}
			s.note("%s is read as %s.", printable(f.Name), f.Format)
		}
	}
	if l.Unread > 0 {
		s.note("Of %d %s %d cannot be read:", l.Read+l.Unread+l.Skipped, plural(int(min(l.Read+l.Unread+l.Skipped, 2)), "line"), l.Unread)
	}
	const shown = 10
	for i, c := range l.Causes {
		if i == shown {
			s.note("  … and %d more causes", len(l.Causes)-shown)
			break
		}
		s.note("  %s: %s: %s (%d %s)", printable(c.First), printable(c.Field), printable(c.Cause), c.Lines, plural(int(min(c.Lines, 2)), "line"))
	}
	for _, n := range r.Notes {
		s.note("%s.", n)
	}
}
