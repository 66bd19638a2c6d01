package strict_test

import (
	stdcmp "cmp"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict"
)

func decodeJSON(t *testing.T, in string, into any) error {
	t.Helper()
	v, err := strict.ParseJSON([]byte(in))
	if err != nil {
		t.Fatalf("ParseJSON(%s) = %v", in, err)
	}
	return v.Decode(into, nil).Err()
}

func TestLimitIsReadStrictlyWithDefaults(t *testing.T) {
	var got ratelimit.Limit
	check.OK(t, decodeJSON(t, `{"name":"burst","requests":5,"window":"2s"}`, &got))
	check.Equal(t, "limit", got, ratelimit.NewLimit("burst", 5, 2*time.Second))
	if err := decodeJSON(t, `{"requests":0}`, &got); err != nil || got.Validate() == nil {
		t.Errorf("%v, %v: an explicit zero is not a default", err, got.Validate())
	}
	for _, bad := range []string{
		`{"request":5}`, `{"window":"soon"}`, `{"window":60}`, `{"requests":"many"}`, `{"requests":1.5}`, `[]`, `{"on_outage":1}`,
	} {
		if err := decodeJSON(t, bad, &got); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// TestStrictLimitIsCompleted: fields that are absent, or null in JSON, get the values of a strict
// limit.
func TestStrictLimitIsCompleted(t *testing.T) {
	want := ratelimit.NewLimit("a", 10, 10*time.Minute)
	want.MakeStrict()
	given := want
	given.Frames, given.LeaseWait = 6, 200*time.Millisecond
	wrong := want
	wrong.Algorithm, wrong.Frames, wrong.OnOutage, wrong.LeaseWait = ratelimit.Weighted, 1, ratelimit.Share, 0
	for _, tt := range []struct {
		json, yaml string
		want       ratelimit.Limit
	}{
		{`{"name":"a","requests":10,"window":"10m","strict":true,"frames":null}`, "strict: true\nname: a\nrequests: 10\nwindow: 10m\n", want},
		{
			`{"name":"a","requests":10,"window":"10m","strict":true,"frames":6,"lease_wait":"200ms"}`,
			"{name: a, requests: 10, window: 10m, strict: true, frames: 6, lease_wait: 200ms}", given,
		},
		{
			`{"name":"a","requests":10,"window":"10m","strict":true,"frames":1,"algorithm":"weighted","on_outage":"share","lease_wait":"0s"}`,
			"{name: a, requests: 10, window: 10m, strict: true, frames: 1, algorithm: weighted, on_outage: share, lease_wait: 0s}", wrong,
		},
		{`{"name":"a","requests":10,"window":"10m","strict":false}`, "{name: a, requests: 10, window: 10m, strict: false}", ratelimit.NewLimit("a", 10, 10*time.Minute)},
	} {
		var fromJSON, fromYAML ratelimit.Limit
		if err := decodeJSON(t, tt.json, &fromJSON); err != nil || fromJSON != tt.want {
			t.Errorf("%s: %+v, %v", tt.json, fromJSON, err)
		}
		v, errs := strict.ParseYAML("f", []byte(tt.yaml))
		if errs = append(errs, v.Decode(&fromYAML, nil)...); errs != nil || fromYAML != tt.want {
			t.Errorf("%s: %+v, %v", tt.yaml, fromYAML, errs)
		}
		var stored ratelimit.Limit
		if err := json.Unmarshal([]byte(tt.json), &stored); err != nil || stored != tt.want {
			t.Errorf("stored %s: %+v, %v", tt.json, stored, err)
		}
	}
}

// document has every kind of field.
type document struct {
	embedded
	Count   int                 `json:"count"`
	Big     int64               `json:"big"`
	Share   float64             `json:"share"`
	On      bool                `json:"on"`
	Wait    time.Duration       `json:"wait"`
	At      time.Time           `json:"at"`
	Maybe   *string             `json:"maybe"`
	List    []string            `json:"list"`
	Named   map[string]embedded `json:"named"`
	Skipped int                 `json:"skipped" schema:"readonly"`
	Either  listOrWord          `json:"either"`
	Hidden  string              `json:"-"`
}

// listOrWord can be given as a word instead of a list.
type listOrWord []string

func (l *listOrWord) UnmarshalText(text []byte) error {
	if string(text) != "all" {
		return errors.New("must be a list or all")
	}
	*l = nil
	return nil
}

type embedded struct {
	Name string `json:"name"`
}

func TestDecode(t *testing.T) {
	maybe := "x"
	want := document{
		embedded: embedded{"n"}, Count: 1000, Big: 1 << 60, Share: 0.5, On: true, Wait: 90 * time.Second,
		At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Maybe: &maybe, List: []string{"a"}, Named: map[string]embedded{"a.b": {"m"}},
		Either: listOrWord{"b"},
	}
	const asJSON = `{"name":"n","count":1e3,"big":1152921504606846976,"share":0.5,"on":true,"wait":"90s",
		"at":"2026-03-01T12:00:00Z","maybe":"x","list":["a"],"named":{"a.b":{"name":"m"}},"skipped":[1,{}],"either":["b"]}`
	const asYAML = `{name: n, count: 1000, big: 1152921504606846976, share: 0.5, on: true, wait: 90s,
		at: "2026-03-01T12:00:00Z", maybe: x, list: [a], named: {a.b: {name: m}}, skipped: [1, {}], either: [b]}`
	var fromJSON, fromYAML document
	check.OK(t, decodeJSON(t, asJSON, &fromJSON))
	v, errs := strict.ParseYAML("x.yaml", []byte(asYAML))
	origins := map[string]string{}
	if errs = append(errs, v.Decode(&fromYAML, origins)...); errs != nil {
		t.Fatal(errs)
	}
	for format, got := range map[string]document{"JSON": fromJSON, "YAML": fromYAML} {
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(document{}), cmp.Comparer(func(a, b embedded) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	if origins["name"] != "x.yaml:1" || origins["list[0]"] != "x.yaml:2" || origins[`named["a.b"].name`] != "x.yaml:2" {
		t.Errorf("origins: %v", origins)
	}
	if err := decodeJSON(t, `{"name":null,"maybe":null,"list":null,"on":null}`, &fromJSON); err != nil || fromJSON.Name != "n" || len(fromJSON.List) != 1 {
		t.Errorf("null is not as if absent: %v, %+v", err, fromJSON)
	}
	if err := decodeJSON(t, `{"either":"all"}`, &fromJSON); err != nil || fromJSON.Either != nil {
		t.Errorf("the word is not read: %v, %+v", err, fromJSON)
	}
}

func TestDecodeReportsEverything(t *testing.T) {
	endless := strings.Repeat("9", 5000)
	for _, tt := range []struct{ in, json, yaml string }{ // yaml is empty if only the line is added
		{`{"nam": "x"}`, "nam: unknown field; did you mean name?", ""},
		{`{"Hidden": "x"}`, "Hidden: unknown field; the fields are NAMES", ""},
		{`{"Name": "x"}`, "Name: unknown field; did you mean name?", ""},
		{`{"": 1}`, `[""]: unknown field; the fields are NAMES`, ""},
		{`{"count": "ten"}`, `count: must be a whole number, not "ten"`, ""},
		{`{"count": 1.5}`, `count: must be a whole number, not 1.5`, ""},
		{`{"big": 9223372036854775808}`, `big: must be a whole number, not 9223372036854775808`, `big: "9223372036854775808" is not a decimal whole number of at most 64 bits (f:1)`},
		{`{"share": true}`, "share: must be a number, not true", ""},
		{`{"share": ` + endless + `}`, "share: " + endless[:64] + "… is too large", `share: must be a number, not "` + endless[:64] + `…" (f:1)`},
		{`{"count": ` + endless + `}`, "count: must be a whole number, not " + endless[:64] + "…", `count: must be a whole number, not "` + endless[:64] + `…" (f:1)`},
		{`{"on": "yes"}`, `on: must be true or false, not "yes"`, ""},
		{`{"wait": 60}`, "wait: must be a duration with a unit, such as 60s, not 60", ""},
		{`{"wait": "soon"}`, `wait: must be a duration with a unit, such as 60s, not "soon"`, ""},
		{`{"at": "noon"}`, `at: parsing time "noon" as "2006-01-02T15:04:05Z07:00": cannot parse "noon" as "2006"`, ""},
		{`{"maybe": []}`, "maybe: must be text, not a list", ""},
		{`{"list": {}}`, "list: must be a list, not an object", ""},
		{`{"list": "a"}`, `list: must be a list, not "a"; write [ "a" ]`, ""},
		{`{"list": [1, null]}`, "list[0]: must be text, not 1\nlist[1]: must be text, not null", "list[0]: must be text, not 1; write it in quotes (f:1)\nlist[1]: must be text, not null (f:1)"},
		{`{"either": "some"}`, "either: must be a list or all", ""},
		{`{"either": 5}`, "either: must be a list, not 5", ""},
		{`{"named": {"a": 5}}`, "named.a: must be an object, not a plain value", ""},
		{`[]`, "must be an object, not a list", ""},
	} {
		names := strings.NewReplacer("NAMES", "name, count, big, share, on, wait, at, maybe, list, named, skipped, either")
		var d document
		v, errs := strict.ParseYAML("f", []byte(tt.in))
		errs = append(errs, v.Decode(&d, nil)...)
		check.Equal(t, tt.in, decodeJSON(t, tt.in, &d).Error(), names.Replace(tt.json))
		check.Equal(t, tt.in+" as YAML", errs.Error(), names.Replace(stdcmp.Or(tt.yaml, tt.json+" (f:1)")))
	}
}

// These documents are only possible in YAML.
func TestDecodeYAML(t *testing.T) {
	for in, want := range map[string]string{
		"name: a\nname: b":                      "name: is a duplicate of line 1 (f:2)",
		"count: 1\ncount: x":                    "count: is a duplicate of line 1 (f:2)\ncount: must be a whole number, not \"x\" (f:2)",
		"named: {a: {}, a: {nam: 1}}":           "named.a: is a duplicate of line 1 (f:1)\nnamed.a.nam: unknown field; did you mean name? (f:1)",
		"named: {a: &a {name: n}, b: {<<: *a}}": "named.b: merge keys (<<) are not supported; write the fields out (f:1)",
		"named: {<<: {}}":                       "named: merge keys (<<) are not supported; write the fields out (f:1)",
		`named: {"<<": {nam: 1}}`:               `named["<<"].nam: unknown field; did you mean name? (f:1)`,
		"? [a]\n: 1":                            "the name of a field must be text, not a list (f:1)",
		"~: 1":                                  "the name of a field must be text, not null (f:1)",
		"name: 2026-03-01":                      `name: must be text, not 2026-03-01; write it in quotes (f:1)`,
		`name: !!int "a\nb"`:                    `name: must be text, not "a\nb"; write it in quotes (f:1)`,
		"name:":                                 "name: must be text, not null (f:1)",
		"count: 0x10":                           `count: "0x10" is not a decimal whole number of at most 64 bits (f:1)`,
		"name: a\n---\nname: b":                 "only one YAML document is allowed in the file (f:2)",
		"a: b: c":                               "mapping values are not allowed in this context (f:1)",
		"&a named: &b {x: *b}":                  "named.x.x: unknown field; the fields are name (f:1)",
	} {
		var d document
		v, errs := strict.ParseYAML("f", []byte(in))
		if v != nil {
			errs = append(errs, v.Decode(&d, nil)...)
		}
		check.Equal(t, in, errs.Error(), want)
	}
	for _, empty := range []string{"", "# nothing", "~"} {
		if v, errs := strict.ParseYAML("f", []byte(empty)); v != nil || errs != nil {
			t.Errorf("%q: %v, %v, want nothing", empty, v, errs)
		}
	}
}

// Duration is a number with the name of a duration only.
type Duration int64

func TestDurationsGoByTheirType(t *testing.T) {
	var d struct {
		Ours  config.Duration `json:"ours"`
		Plain Duration        `json:"plain"`
	}
	if err := decodeJSON(t, `{"ours":"60s","plain":60}`, &d); err != nil || d.Ours.Std() != time.Minute || d.Plain != 60 {
		t.Errorf("%v: %+v", err, d)
	}
}

func TestSetAndAt(t *testing.T) {
	var d document
	for path, texts := range map[string][]string{"wait": {"1s", "2s"}, "list": {"a, b", "c"}, "maybe": {"y"}, "name": {"n"}} {
		if err := strict.Set(&d, path, texts); err != nil {
			t.Errorf("Set(%s) = %v", path, err)
		}
	}
	if d.Wait != 2*time.Second || strings.Join(d.List, "|") != "a|b|c" || *d.Maybe != "y" || d.Name != "n" {
		t.Errorf("got %+v", d)
	}
	if _, err := strict.At(&d, "no.such"); err == nil {
		t.Error("At() finds a field that is not there")
	}
	if err := strict.Set(&d, "on", []string{"perhaps"}); err == nil || err.Error() != `"perhaps" is neither true nor false` {
		t.Errorf("Set() = %v", err)
	}
}

func TestWriteYAMLReadsBack(t *testing.T) {
	maybe := "yes"
	want := document{
		embedded: embedded{"5"}, Count: -1, Share: 1e-9, Wait: time.Second, Maybe: &maybe, List: []string{"a: b", "", "x\x7fy\n", "null"},
		Named: map[string]embedded{"2026-03-01": {"0x10"}, "<&>": {"\u2028"}}, Either: listOrWord{"b"},
	}
	type shown struct {
		document
		Wait    string `json:"wait"`
		Skipped *int   `json:"skipped,omitempty"`
	}
	var out strings.Builder
	check.OK(t, strict.WriteYAML(&out, shown{document: want, Wait: "1s"}))
	v, errs := strict.ParseYAML("f", []byte(out.String()))
	var got document
	if errs = append(errs, v.Decode(&got, nil)...); errs != nil {
		t.Fatalf("%v in\n%s", errs, out.String())
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(document{}), cmp.Comparer(func(a, b embedded) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, out.String())
	}
}
