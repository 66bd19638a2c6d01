package limits

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
)

// view is what the API shows of the settings, a policy, a tier or a candidate. They have the same
// names for the same fields.
type view struct {
	adminapi.Policy
	Name          string            `json:"name"` // of a tier
	Tier          string            `json:"tier"` // empty if it is absent, like the next ones
	Mode          string            `json:"mode"`
	OverLimit     string            `json:"over_limit"`
	MaxWait       string            `json:"max_wait"`
	MaxWaiting    int               `json:"max_waiting"`
	Criticality   string            `json:"criticality"`
	CanaryPercent float64           `json:"canary_percent"`
	Clients       int               `json:"clients"`   // of a tier
	Overrides     int               `json:"overrides"` // among effective values
	Since         time.Time         `json:"since"`
	Activity      adminapi.Activity `json:"activity"`
	Default       *view             `json:"default"`   // never nil
	Effective     *view             `json:"effective"` // never nil
	Meta          struct {
		Source  string    `json:"source"`
		Changed []string  `json:"changed"`
		Until   time.Time `json:"until"`
	} `json:"meta"`
	fields map[string]json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (v *view) UnmarshalJSON(b []byte) error {
	type plain view // without this method
	*v = view{Default: &view{}, Effective: &view{}}
	return cmp.Or(json.Unmarshal(b, (*plain)(v)), json.Unmarshal(b, &v.fields))
}

// has reports whether the field is set.
func (v *view) has(field string) bool {
	return !syntax.IsNull(v.fields[field]) && string(v.fields[field]) != "false"
}

// rows returns the limits and what goes with them as table rows. from says where the value of a field
// comes from.
func (v *view) rows(from func(field string) string) (rows [][]string) {
	add := func(name, field, text string) { rows = append(rows, []string{name, orNone(text), from(field)}) }
	add("user limits", "user", syntax.ShowLimits(v.User))
	add("client limits", "client", syntax.ShowLimits(v.Client))
	if len(v.Total) > 0 {
		add("total limits", "total", syntax.ShowLimits(v.Total))
	}
	if len(v.Source) > 0 {
		add("source limits", "source", syntax.ShowLimits(v.Source))
	}
	add("over limit", "over_limit", v.OverLimit)
	switch {
	case v.MaxWait != "" && v.MaxWaiting > 0:
		add("max wait", "max_wait", fmt.Sprintf("%s, %d at once", v.MaxWait, v.MaxWaiting))
	case v.MaxWait != "":
		add("max wait", "max_wait", v.MaxWait)
	}
	add("ban", "ban", showBan(v.Ban))
	add("criticality", "criticality", v.Criticality)
	add("hide headers", "hide_headers", yesNo(v.HideHeaders))
	return rows
}

// valueTable writes rows between a heading and the note, with the end of a temporary value.
func (l *limits) valueTable(v *view, rows ...[]string) error {
	rows = slices.Insert(rows, 0, []string{"SETTING", "VALUE", "FROM"})
	return l.Table(append(append(rows, []string{"note", v.Note, ""}), v.untilRow()...)...)
}

// untilRow returns a row with the end of a temporary value, if it has one.
func (v *view) untilRow() [][]string {
	if v.Meta.Until.IsZero() {
		return nil
	}
	return [][]string{{"until", command.DateTime(v.Meta.Until), "changed here"}}
}

func (l *limits) settingsTable(v view) error {
	from := func(field string) string {
		if slices.Contains(v.Meta.Changed, field) {
			return "changed here"
		}
		return "configuration file"
	}
	rows := [][]string{{"mode", v.Mode, from("mode")}, {"canary", fmt.Sprintf("%v%%", v.CanaryPercent), from("canary_percent")}}
	return l.valueTable(&v, append(rows, v.Default.rows(func(field string) string { return from("default." + field) })...)...)
}

func (l *limits) tierTable(v view) error {
	from := func(field string) string {
		if v.has(field) {
			return "tier"
		}
		return "all clients"
	}
	rows := append([][]string{{"mode", orNone(v.Mode), from("mode")}}, v.rows(from)...)
	return l.valueTable(&v, append(rows, []string{"clients", strconv.Itoa(v.Clients), ""})...)
}

func (l *limits) policyTable(ctx context.Context, v view) (err error) {
	now, tier := v.Effective, view{}
	if now.Tier != "" {
		if tier, err = get[view](ctx, l, tierPath(now.Tier), nil); err != nil {
			return fmt.Errorf("read the tier %s: %w", now.Tier, err)
		}
	}
	users, err := l.overrideRows(ctx, v.ClientID, now.Overrides)
	if err != nil {
		return err
	}
	from := func(field string) string {
		switch {
		case v.has(field) && v.Meta.Source == "api":
			return "changed here"
		case v.has(field):
			return "configuration file"
		case tier.has(field):
			return "tier " + tier.Name
		}
		return "all clients"
	}
	now.MaxWait = cmp.Or(now.MaxWait, v.MaxWait, tier.MaxWait) // one that lets no request wait is not effective
	rows := append([][]string{{"mode", now.Mode, from("mode")}, {"trusted", yesNo(now.Trusted), from("trusted")}}, now.rows(from)...)
	return l.valueTable(&v, append(rows, users...)...)
}

// shownUsers is the number of users with their own limits that "limits get" shows.
const shownUsers = 100

// overrideRows returns table rows for the users of a client with their own limits.
func (l *limits) overrideRows(ctx context.Context, clientID string, n int) (rows [][]string, err error) {
	if n == 0 {
		return nil, nil
	}
	page, err := get[adminapi.Overrides](ctx, l, policyPath(clientID)+"/users", url.Values{"limit": {strconv.Itoa(shownUsers)}})
	if err != nil {
		return nil, err
	}
	for _, o := range page.Overrides {
		rows = append(rows, []string{"user " + o.Username, syntax.ShowLimits(o.User), "changed here" + untilTime(o.Meta.Until), o.Note})
	}
	if more := n - len(page.Overrides); more > 0 {
		rows = append(rows, []string{fmt.Sprintf("and %d more", more)})
	}
	return rows, nil
}

func (l *limits) candidateTable(v view) error {
	rows, a := [][]string{{"tried since", command.DateTime(v.Since)}}, &v.Activity
	if v.Criticality != "" {
		v.Criticality += ", when it is promoted"
	}
	for _, row := range v.rows(func(string) string { return "" }) {
		if row[0] == "over limit" {
			row[0] = "over the limit"
		}
		if strings.HasSuffix(row[0], " limits") || row[1] != "-" && row[0] != "hide headers" {
			rows = append(rows, row)
		}
	}
	rows = append(append(rows, []string{"note", v.Note}), v.untilRow()...)
	rows = append(rows, []string{"", ""}, []string{"since " + command.DateTime(a.Since), ""}, []string{"  requests tried", command.Number(a.Tried)})
	for i, of := range []struct {
		would, live         string
		candidate, now, dry uint64
	}{
		{"it would have denied", "denied by the live limits", a.CandidateWouldDeny, a.Denied, a.WouldDeny},
		{"it would have answered with the last token", "answered so by the live limits", a.CandidateWouldReuse, a.Reused, a.WouldReuse},
		{"it would have delayed", "delayed under the live limits", a.CandidateWouldDelay, a.Delayed, a.WouldDelay},
		{"it would have denied by a ban", "denied by a ban in force", a.CandidateWouldBan, a.Banned, a.WouldBan},
	} {
		if i == 0 || of.candidate+of.now+of.dry > 0 {
			rows = append(rows, []string{"  " + of.would, command.Number(of.candidate)}, []string{"  " + of.live, command.Number(of.now)},
				[]string{"  in dry-run, would have been", command.Number(of.dry)})
		}
	}
	if len(a.Clients) > 0 {
		rows = append(rows, []string{""})
	}
	if err := l.Table(rows...); err != nil || len(a.Clients) == 0 {
		return err
	}
	rows = [][]string{{"CLIENT", "TRIED", "CANDIDATE DENIES", "DENIED", "WOULD DENY"}}
	for _, cl := range a.Clients {
		rows = append(rows, []string{
			cl.ClientID, command.Number(cl.Tried), command.Number(cl.CandidateWouldDeny + cl.CandidateWouldBan), command.Number(cl.Denied), command.Number(cl.WouldDeny),
		})
	}
	return l.Table(rows...)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orNone(text string) string { return cmp.Or(text, "-") }
