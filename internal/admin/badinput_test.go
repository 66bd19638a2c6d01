package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/strict/fielderr"
)

// TestInvalidValuesAreNamed: every error for an invalid value names the field and the allowed
// values.
func TestInvalidValuesAreNamed(t *testing.T) {
	long := strings.Repeat("x", 501)
	tests := []struct{ name, path, body, field, says string }{
		{"zero requests", "/policies/shop", `{"user":[{"requests":0}]}`, "user[0].requests", "not between 1 and 1000000000"},
		{"negative requests", "/policies/shop", `{"client":[{},{"name":"b","requests":-5}]}`, "client[1].requests", "-5"},
		{"requests as text", "/policies/shop", `{"user":[{"requests":"ten"}]}`, "user[0].requests", `whole number, not "ten"`},
		{"half a request", "/policies/shop", `{"user":[{"requests":1.5}]}`, "user[0].requests", "1.5"},
		{"more than fits", "/policies/shop", `{"user":[{"requests":1e300}]}`, "user[0].requests", "1e300"},
		{"zero window", "/policies/shop", `{"user":[{"window":"0s"}]}`, "user[0].window", "above 0 and at most"},
		{"window without unit", "/policies/shop", `{"user":[{"window":"60"}]}`, "user[0].window", `must be a duration with its unit, such as 60s, not "60"`},
		{"window as a number", "/policies/shop", `{"user":[{"window":60}]}`, "user[0].window", "with its unit"},
		{"window too long", "/policies/shop", `{"user":[{"window":"10000h"}]}`, "user[0].window", "744h"},
		{"window too fine", "/policies/shop", `{"user":[{"window":"1us"}]}`, "user[0].window", "milliseconds"},
		{"frames do not divide", "/policies/shop", `{"user":[{"window":"1s","frames":7}]}`, "user[0].frames", "do not divide"},
		{"no frames", "/policies/shop", `{"user":[{"frames":0}]}`, "user[0].frames", "between 1 and 60"},
		{"too many frames", "/policies/shop", `{"user":[{"frames":1000000}]}`, "user[0].frames", "between 1 and 60"},
		{"algorithm", "/policies/shop", `{"user":[{"algorithm":"token_bucket"}]}`, "user[0].algorithm", `"sliding", "weighted", "fixed"`},
		{"soft ratio", "/policies/shop", `{"user":[{"soft_ratio":1.1}]}`, "user[0].soft_ratio", "above 0 and at most 1"},
		{"on outage", "/policies/shop", `{"user":[{},{"name":"b","on_outage":"allow"}]}`, "user[1].on_outage", `"share", "memory", "deny"`},
		{"empty on outage", "/policies/shop", `{"user":[{"on_outage":""}]}`, "user[0].on_outage", `"share", "memory", "deny"`},
		{"on outage as a switch", "/policies/shop", `{"client":[{"on_outage":true}]}`, "client[0].on_outage", "must be text, not true"},
		{"default on outage", "/settings", `{"default":{"client":[{"on_outage":"Deny"}]}}`, "default.client[0].on_outage", `"Deny" is none of`},
		{"on outage of a candidate", "/candidates/shop", `{"user":[{"on_outage":"never"}]}`, "user[0].on_outage", `"never" is none of`},
		{"strict and weighted", "/policies/shop", `{"user":[{"strict":true,"frames":1,"algorithm":"weighted"}]}`, "user[0].algorithm", `a strict limit must be "sliding"`},
		{"strict and shared", "/settings", `{"default":{"user":[{"strict":true,"on_outage":"share"}]}}`, "default.user[0].on_outage", `a strict limit must have "deny"`},
		{"strict as text", "/policies/shop", `{"user":[{"strict":"yes"}]}`, "user[0].strict", "true or false"},
		{"long lease_wait", "/candidates/shop", `{"user":[{"strict":true,"lease_wait":"6s"}]}`, "user[0].lease_wait", "between 1ms and 5s"},
		{"lease_wait of no strict limit", "/policies/shop", `{"user":[{"lease_wait":"50ms"}]}`, "user[0].lease_wait", "only a strict limit"},
		{"name", "/policies/shop", `{"user":[{"name":"per minute"}]}`, "user[0].name", "letters"},
		{"one name twice", "/policies/shop", `{"user":[{},{}]}`, "user[1].name", "user[0]"},
		{"no limits", "/policies/shop", `{"user":[]}`, "user", "at least one"},
		{"too many limits", "/policies/shop", `{"user":[` + strings.Repeat("{},", 8) + `{}]}`, "user", "more than 8"},
		{"limits are no list", "/policies/shop", `{"user":{"requests":5}}`, "user", "must be a list, not an object"},
		{"a limit is no object", "/policies/shop", `{"user":[5]}`, "user[0]", "must be an object, not a plain value"},
		{"mode", "/policies/shop", `{"mode":"dry-run"}`, "mode", `"enforce", "dry_run", "off"`},
		{"empty mode", "/policies/shop", `{"mode":""}`, "mode", `null`},
		{"trusted as text", "/policies/shop", `{"trusted":"yes"}`, "trusted", "true or false"},
		{"unknown field", "/policies/shop", `{"trusted":true,"limit":5}`, "limit", "unknown field; there are client_id, trusted, tier, mode"},
		{"unknown field of a limit", "/policies/shop", `{"user":[{"burst":5}]}`, "user[0].burst", "unknown field"},
		{"another's client_id", "/policies/shop", `{"client_id":"app"}`, "client_id", `"shop"`},
		{"note too long", "/policies/shop", `{"note":"` + long + `"}`, "note", "more than 500"},
		{"note with a line break", "/policies/shop", `{"note":"a\nb"}`, "note", "printable"},
		{"canary", "/settings", `{"canary_percent":101}`, "canary_percent", "between 0 and 100"},
		{"canary with a sign", "/settings", `{"canary_percent":"5%"}`, "canary_percent", "must be a number"},
		{"default trusted", "/settings", `{"default":{"trusted":true}}`, "default.trusted", "unknown field"},
		{"default limit", "/settings", `{"default":{"user":[{"requests":0}]}}`, "default.user[0].requests", "between 1 and"},
		{"clients in the settings", "/settings", `{"clients":{}}`, "clients", "unknown field"},
		{"empty candidate", "/candidates/shop", `{}`, "user", "needs limits"},
		{"impossible candidate", "/candidates/shop", `{"user":[{"requests":0}]}`, "user[0].requests", "between 1 and"},
		{"trusted candidate", "/candidates/_default", `{"user":[{}],"trusted":true}`, "trusted", "unknown field"},
		{"no object", "/policies/shop", `[]`, "", "must be an object, not a list"},
		{"null", "/settings", `null`, "", "not null"},
	}
	w := newWorld(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			a := w.put(tt.path, tt.body).is(http.StatusUnprocessableEntity)
			if got := a.at("errors", 0, "field"); got != tt.field {
				t.Errorf("the field is %v, want %q", got, tt.field)
			}
			if got := a.at("errors", 0, "detail").(string); !strings.Contains(got, tt.says) {
				t.Errorf("the detail %q does not say %q", got, tt.says)
			}
		})
	}
	equal(t, "version", w.policies.Snapshot().Version(), 0)
}

func TestAllProblemsAreReportedTogether(t *testing.T) {
	w := newWorld(t)
	a := w.put("/policies/shop", `{"mode":"x","user":[{"requests":"a","window":5,"color":1}],"client":7,"zzz":1}`).is(422)
	equal(t, "problems", len(a.at("errors").([]any)), 6)
}

// TestWhereABodyIsMalformed: the problem for a body that is not JSON applies to the whole body and
// gives the position.
func TestWhereABodyIsMalformed(t *testing.T) {
	w := newWorld(t)
	a := w.put("/policies/shop", "{\n \"trusted\": yes\n}").is(http.StatusBadRequest)
	if field, detail := a.at("errors", 0, "field"), a.at("errors", 0, "detail").(string); field != "" || !strings.HasPrefix(detail, "line 2, column 13: ") {
		t.Errorf("%q: %s", field, detail)
	}
}

// TestPathsOfProblems: problems of the form are in the order of the document, before those of the
// values. An odd name is quoted, because its dots would look like separators.
func TestPathsOfProblems(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		path, body string
		want       []string
	}{
		{
			"/policies/shop",
			`{"zzz":1,"note":5,"user":[{"a.b":1,"window":1,"Name":"x","requests":"a"},7],"hide_headers":1,"client":[],"[0]":1,"mode":"x","client_id":"app"}`,
			[]string{
				"zzz", "note", `user[0]["a.b"]`, "user[0].window", "user[0].Name", "user[0].requests", "user[1]",
				"hide_headers", `["[0]"]`, "client_id", "mode", "client",
			},
		},
		{
			"/settings",
			`{"a.b":1,"note":"\n","default":{"x":1,"hide_headers":1,"client":5,"user":[]},"canary_percent":"x","mode":1}`,
			[]string{`["a.b"]`, "default.x", "default.hide_headers", "default.client", "canary_percent", "mode", "note", "default.user"},
		},
	} {
		var got []string
		for _, e := range w.put(tt.path, tt.body).is(422).at("errors").([]any) {
			got = append(got, e.(map[string]any)["field"].(string))
		}
		check.Equal(t, tt.path, got, tt.want)
	}
}

func TestTheAnswerDoesNotGrowWithTheProblems(t *testing.T) {
	w := newWorld(t)
	a := w.put("/policies/shop", `{"user":[`+strings.Repeat("5,", 30_000)+`5]}`).is(422)
	equal(t, "problems", len(a.at("errors").([]any)), fielderr.Most+1)
	equal(t, "the last", a.at("errors", fielderr.Most, "detail"), any("more problems are not shown"))
}

func TestMalformedRequests(t *testing.T) {
	w := newWorld(t)
	etag := w.get("/policies/shop").header.Get("ETag")
	tests := []struct {
		name   string
		r      request
		status int
		says   string
	}{
		{"no JSON", request{body: "mode: off"}, 400, "cannot be read as JSON: line 1, column 1: "},
		{"empty", request{body: ""}, 400, "too early"},
		{"cut off", request{body: `{"mode":`}, 400, "too early"},
		{"two values", request{body: `{} {}`}, 400, "follows"},
		{"a name twice", request{body: `{"trusted":false,"trusted":true}`}, 400, `line 1, column 18: the name "trusted" stands twice`},
		{"not UTF-8", request{body: "{\"note\":\"\xff\"}"}, 400, "UTF-8"},
		{"deep", request{body: strings.Repeat(`{"a":`, 50) + "1" + strings.Repeat("}", 50)}, 400, "deeply"},
		{"very deep", request{body: strings.Repeat("[", 60_000)}, 400, "deeply"},
		{"too large", request{body: `{"note":"` + strings.Repeat("x", 65<<10) + `"}`}, 413, "65536"},
		{"a form", request{contentType: "application/x-www-form-urlencoded", body: "mode=off"}, 415, "application/json"},
		{"a patch sent as PUT", request{contentType: "application/merge-patch+json", body: "{}"}, 415, "application/json"},
		{"JSON Patch", request{method: "PATCH", contentType: "application/json-patch+json", body: "[]"}, 415, "merge-patch"},
		{"a patch that is no object", request{method: "PATCH", body: `[1]`}, 400, "RFC 7396"},
		{"a parameter twice", request{path: "/policies/shop?reason=a&reason=b", body: "{}"}, 422, "2 times"},
		{"an unknown parameter", request{path: "/policies/shop?dry_run=true", body: "{}"}, 422, "validate"},
		{"validate=yes", request{path: "/policies/shop?validate=yes", body: "{}"}, 422, "true or false"},
		{"a broken query", request{path: "/policies/shop?reason=%zz", body: "{}"}, 400, "query"},
		{"a long reason", request{path: "/policies/shop?reason=" + strings.Repeat("x", 501), body: "{}"}, 422, "more than 500"},
		{"a limit of zero", request{method: "GET", path: "/audit?limit=0"}, 422, "from 1 to 1000"},
		{"a limit that is none", request{method: "GET", path: "/top?limit=many"}, 422, "from 1 to 100"},
		{"another method", request{method: "POST", path: "/settings", body: "{}"}, 405, "POST"},
		{"another path", request{method: "GET", path: "/setting"}, 404, "openapi.json"},
		{"deeper down", request{method: "GET", path: "/policies/shop/user"}, 404, "openapi.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			r := request{method: "PUT", path: "/policies/shop", token: writer, ifMatch: etag, contentType: "application/json", body: tt.r.body}
			if tt.r.method != "" {
				r.method = tt.r.method
			}
			if tt.r.path != "" {
				r.path = tt.r.path
			}
			if tt.r.contentType != "" {
				r.contentType = tt.r.contentType
			}
			w.send(r).is(tt.status).says(tt.says)
		})
	}
	equal(t, "version", w.policies.Snapshot().Version(), 0)
}
