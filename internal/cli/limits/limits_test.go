package limits

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/ratelimit"
)

// TestMaxWaitIsShown: where it is set; one that is 0 is not effective, and shown nevertheless.
func TestMaxWaitIsShown(t *testing.T) {
	waiting := func(v *view) []string {
		for _, row := range v.rows(func(field string) string { return "from " + field }) {
			if row[0] == "max wait" {
				return row
			}
		}
		return nil
	}
	var v view
	check.Equal(t, "none", waiting(&v), nil)
	v.MaxWait = "0s"
	check.Equal(t, "of 0", waiting(&v), []string{"max wait", "0s", "from max_wait"})
	v.MaxWait, v.MaxWaiting = "2s", 20
	check.Equal(t, "row", waiting(&v), []string{"max wait", "2s, 20 at once", "from max_wait"})
}

func TestNullPatch(t *testing.T) {
	got, err := nullPatch([]string{"mode", "user", "hide-headers"}, false)
	if diff := cmp.Diff(map[string]any{"mode": nil, "user": nil, "hide_headers": nil}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	got, err = nullPatch([]string{"mode", "canary", "user", "hide-headers"}, true)
	want := map[string]any{"mode": nil, "canary_percent": nil, "default": map[string]any{"user": nil, "hide_headers": nil}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, settings := range []bool{true, false} {
		if _, err := nullPatch([]string{"limits"}, settings); err == nil {
			t.Error("an unknown field is taken")
		}
	}
}

func TestDifferences(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{`null`, `{"client_id":"shop","trusted":true,"hide_headers":false}`, "trusted yes"},
		{`{}`, `{"username":"a\u001b[2J"}`, `username a\x1b[2J`}, // Printable
		{`{"mode":"dry_run"}`, `{"mode":"enforce"}`, "mode dry_run -> enforce"},
		{`{"mode":"off","note":"x"}`, `{}`, "no mode (was off); no note (was x)"},
		{`{"default":{"user":[{"requests":100,"window":"60s"}]}}`, `{"default":{"user":[{"requests":5,"window":"60s"},{"name":"per-second","requests":1,"window":"1s"}]}}`, "default.user 100/60s -> 5/60s 1/1s"},
		{`{"user":[{"requests":5,"window":"60s"}]}`, `{"user":[{"requests":5,"window":"60s","frames":1,"algorithm":"sliding","soft_ratio":0.8,"on_outage":"share"}]}`, "-"},
		{`{"user":[{"requests":5,"window":"60s","on_outage":"share"}]}`, `{"user":[{"requests":5,"window":"60s","on_outage":"deny"}]}`, "user 5/60s -> 5/60s,on_outage=deny"},
		{`{"user":[{"requests":5,"window":"60s","name":"per-minute"}]}`, `{"user":[{"requests":5,"window":"60s","name":"burst"}]}`, "user 5/60s -> 5/60s,name=burst"},
		{`{"user":[{"requests":5,"window":"60s","strict":true}]}`, `{"user":[{"requests":5,"window":"60s","frames":60,"algorithm":"sliding","soft_ratio":0.8,"on_outage":"deny","strict":true,"lease_wait":"50ms"}]}`, "-"},
		{`{"user":[{"requests":5,"window":"60s"}]}`, `{"user":[{"requests":5,"window":"60s","strict":true,"lease_wait":"100ms"}]}`, "user 5/60s -> 5/60s,strict,lease_wait=100ms"},
		{`{"user":[{"requests":5,"window":"60s"}]}`, `{"user":[{"requests":5,"window":"60s","grants":["password"]}]}`, "user 5/60s -> 5/60s,grants=password"},
		{`{"user":[{"requests":5,"grants":["password","refresh_token"]}]}`, `{"user":[{"requests":5,"grants":["refresh_token","password"]}]}`, "-"},
		{`null`, `{"user":[{"requests":5,"window":"1m30s","name":"per-90s"}]}`, "user 5/90s"},
		{`{"user":[1,"a"]}`, `{"user":[2]}`, "user 1 a -> 2"},
		{`{"canary_percent":100}`, `{"canary_percent":100}`, "-"},
		{`null`, `{"username":null}`, "-"},
		{`null`, `{"name":"gold","user":[{"requests":5,"window":"60s"}]}`, "user 5/60s"},
		{`{"trusted":false,"hide_headers":true}`, `null`, "no hide_headers (was yes)"},
	} {
		if got := differences(json.RawMessage(tt.before), json.RawMessage(tt.after)); got != tt.want {
			t.Errorf("%s to %s: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}

// TestSharedLists: --total and --source are lists of their own, whose limits have other names than those of
// the other lists.
func TestSharedLists(t *testing.T) {
	f := limitFlags{both: []string{"10/60s"}, total: []string{"1000/60s", "5000/1h,name=hourly"}, source: []string{"200/60s"}}
	doc := map[string]any{}
	check.OK(t, f.parse(doc))
	for field, want := range map[string]string{
		"user": "10/60s", "client": "10/60s", "total": "1000/60s,name=total-per-minute 5000/1h,name=hourly",
		"source": "200/60s,name=source-per-minute",
	} {
		list, _ := doc[field].([]ratelimit.Limit)
		check.Equal(t, field, syntax.ShowLimits(list), want)
	}
	patch, err := nullPatch([]string{"source"}, true)
	check.OK(t, err)
	check.Equal(t, "taken back of all clients", patch, map[string]any{"default": map[string]any{"source": nil}})
	for _, list := range syntax.SharedLists {
		usual := syntax.Short("policies", []byte(`{"`+list+`":[{"name":"a","requests":5,"window":"1m","frames":1,"on_outage":"share"}]}`))
		check.Equal(t, list+" of a file", string(usual), `{"`+list+`":[{"name":"a","requests":5,"window":"60s"}]}`)
	}
	f = limitFlags{total: []string{"0/60s"}}
	check.ErrorSays(t, f.parse(map[string]any{}), "--total[0].requests")
}
