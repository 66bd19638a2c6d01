package labels

import (
	"encoding/json"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

func TestLabels(t *testing.T) {
	l, err := Parse([]string{"team=payments", "note=", "team.x=A_1"})
	check.OK(t, err)
	check.Equal(t, "pairs", l.Pairs(), []string{"note=", "team.x=A_1", "team=payments"})
	check.Equal(t, "values", l.Values(), map[string]string{"team": "payments", "note": "", "team.x": "A_1"})
	check.Equal(t, "none", Set("").Pairs(), nil)
	for selector, want := range map[string]bool{
		"team=payments": true, "team": true, "note": true, "note=": true, "team.x": true,
		"team=": false, "team=pay": false, "tea": false, "eam": false, "payments": false, "team=payments=": false,
	} {
		check.Equal(t, selector, l.Has(selector), want)
		check.Equal(t, "no labels: "+selector, Set("").Has(selector), false)
	}
	more, err := Parse([]string{"team=orders", "zone=a"})
	check.OK(t, err)
	check.Equal(t, "with", l.With(more).Pairs(), []string{"note=", "team.x=A_1", "team=orders", "zone=a"})
	check.Equal(t, "without", l.Without("team", "gone").Pairs(), []string{"note=", "team.x=A_1"})
	check.Equal(t, "as they were", l, l.With("").Without())

	text, err := json.Marshal(l)
	check.OK(t, err)
	check.Equal(t, "JSON", string(text), `{"note":"","team":"payments","team.x":"A_1"}`)
	var read Set
	check.OK(t, json.Unmarshal(text, &read))
	check.Equal(t, "read", read, l)
	empty, err := json.Marshal(Set(""))
	check.OK(t, err)
	check.Equal(t, "none as JSON", string(empty), `{}`)
}

func TestInvalidLabels(t *testing.T) {
	long, many := strings.Repeat("a", 63), []string{}
	for i := range 16 {
		many = append(many, "a"+strings.Repeat("b", i)+"=")
	}
	for _, tt := range []struct{ pairs, says string }{
		{long + "=" + long, ""},
		{"a.b_c-0=A.b_C-0", ""},
		{strings.Join(many, " "), ""},
		{strings.Join(many, " ") + " z=", "labels: has 17, more than the maximum of 16"},
		{"team", `labels.team: "team" is not name=value`},
		{"=x", `the name "" must have 1 to 63 characters`},
		{long + "a=", "must have 1 to 63 characters"},
		{"Team=x", `labels.Team: the name "Team" must have`},
		{"tëam=x", "the name"},
		{"team=" + long + "a", "at most 63 characters"},
		{"team=a/b", `labels.team: the value "a/b" must have`},
		{"team=a=b", `the value "a=b"`},
		{"team=a\nzone=b", `the value "a\nzone=b"`},
		{"team=a team=b", "labels.team: is a duplicate"},
		{"team=a team.x=c team-y=d team=b", "labels.team: is a duplicate"},
	} {
		_, err := Parse(strings.Split(tt.pairs, " "))
		says(t, err, tt.says)
	}
	for selector, want := range map[string]string{
		"team": "", "team=": "", "team=a": "", "": "the name", "=a": "the name", "Team": "the name", "team=a b": "the value",
	} {
		says(t, CheckSelector(selector), want)
	}
}

// says checks that an error says something, or that there is none if that is empty.
func says(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		check.OK(t, err)
		return
	}
	check.ErrorSays(t, err, want)
}
