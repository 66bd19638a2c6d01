package admin_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/admin"
)

// TestMergePatch runs the examples of RFC 7396 appendix A.
func TestMergePatch(t *testing.T) {
	for _, tt := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		target, patch, want := parse(t, tt[0]), parse(t, tt[1]), parse(t, tt[2])
		if diff := cmp.Diff(want, admin.MergePatch(target, patch)); diff != "" {
			t.Errorf("%s with %s (-want +got):\n%s", tt[0], tt[1], diff)
		}
		if diff := cmp.Diff(parse(t, tt[0]), target); diff != "" {
			t.Errorf("%s was changed itself:\n%s", tt[0], diff)
		}
	}
}

func parse(t *testing.T, s string) any {
	t.Helper()
	v, err := admin.ParseJSON([]byte(s))
	ok(t, err)
	return v
}

// FuzzPolicy: whatever is sent, the answer is an error or a policy that
// survives being shown and sent back.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{
		`{}`, tenAMinute, `{"mode":"off","trusted":true,"hide_headers":true,"note":"x","client":[{"name":"a","frames":6}]}`,
		`{"user":[{"requests":1e3,"window":"1.5s","algorithm":"fixed","soft_ratio":0.5}]}`, `{"a":1,"a":2}`, `[[[`, `{"user":[{"window":"-1s"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := admin.ParseJSON(b)
		if err != nil {
			return
		}
		p, err := admin.ReadPolicy("shop", v)
		if err != nil {
			return
		}
		shown, err := json.Marshal(admin.ShowPolicy("shop", p))
		ok(t, err)
		v, err = admin.ParseJSON(shown)
		ok(t, err)
		again, err := admin.ReadPolicy("shop", v)
		if err != nil {
			t.Fatalf("%s was accepted, and then not: %v", shown, err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("%s came back changed:\n%s", shown, diff)
		}
	})
}
