package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/strict/fielderr"
)

// fieldsOf returns the fields of the problems in a response, in order.
func fieldsOf(a answer) string {
	var fields []string
	for i := range a.at("errors").([]any) {
		fields = append(fields, a.at("errors", i, "field").(string))
	}
	return strings.Join(fields, " ")
}

// TestInvalidValuesAreNamed: every document is checked as a whole. The response names all fields,
// those of the form in the order of the document and before those of the values, and says what is
// allowed. The checks of a limit itself are tested with the configuration file (internal/config).
func TestInvalidValuesAreNamed(t *testing.T) {
	const shop, gold, settings, tried, ada = "/policies/shop", "/tiers/gold", "/settings", "/candidates/shop", "/policies/shop/users/ada"
	const levels = `"critical_plus", "critical", "sheddable_plus", "sheddable"`
	const none = "; omit it, or set it to null, to inherit the value"
	w := newWorld(t)
	w.create(gold, `{}`).is(http.StatusOK)
	for _, tt := range []struct{ path, body, fields, says string }{
		// The form.
		{shop, `[]`, "", "must be an object, not a list"},
		{settings, `null`, "", "not null"},
		{shop, `{"user":{"requests":5}}`, "user", "must be a list, not an object"},
		{shop, `{"user":[5]}`, "user[0]", "must be an object, not a plain value"},
		{shop, `{"user":[{"requests":"ten"}]}`, "user[0].requests", `whole number, not "ten"`},
		{shop, `{"user":[{"window":60}]}`, "user[0].window", "with a unit"},
		{shop, `{"trusted":"yes"}`, "trusted", "true or false"},
		{shop, `{"trusted":true,"limit":5}`, "limit", "unknown field; the fields are client_id, trusted, tier, mode"},
		{shop, `{"client_id":"app"}`, "client_id", `"shop"`},
		{shop, `{"tier":7}`, "tier", ""},
		{gold, `{"name":"silver"}`, "name", ""},
		{gold, `{"trusted":true}`, "trusted", "unknown field"},
		{"/tiers/a%20b", `{}`, "name", ""},
		{settings, `{"default":{"trusted":true}}`, "default.trusted", "unknown field"},
		{settings, `{"clients":{}}`, "clients", "unknown field"},
		{settings, `{"criticality":"critical"}`, "criticality", "unknown field"},
		{"/candidates/_default", `{"user":[{}],"trusted":true}`, "trusted", "unknown field"},
		{ada, `{"user":[{"requests":1}],"username":"eve"}`, "username", ""},
		{ada, `{"user":[{"requests":1}],"client_id":"app"}`, "client_id", ""},
		{ada, `{"user":[{"requests":1}],"client":[]}`, "client", "unknown field"},
		{ada, `{"user":[{"requests":1}],"over_limit":"reuse"}`, "over_limit", "unknown field"},
		{ada, `{"user":[{"requests":1}],"criticality":"critical"}`, "criticality", "unknown field"},
		{ada, `{"user":[{"requests":1}],"max_wait":"2s"}`, "max_wait", "unknown field"},
		{"/policies/shop/users/%20a", `{"user":[{"requests":1}]}`, "username", ""},
		// Modes, levels and notes. An empty text is no value.
		{shop, `{"mode":"dry-run"}`, "mode", `"enforce", "dry_run", "off"`},
		{shop, `{"mode":""}`, "mode", `null`},
		{gold, `{"mode":"on"}`, "mode", ""},
		{shop, `{"tier":"silver"}`, "clients.shop.tier", ""},
		{shop, `{"tier":""}`, "tier", ""},
		{shop, `{"note":"` + strings.Repeat("x", 501) + `"}`, "note", "maximum of 500"},
		{gold, `{"note":"a\nb"}`, "note", "printable"},
		{settings, `{"canary_percent":101}`, "canary_percent", "between 0 and 100"},
		{shop, `{"criticality":"high","note":7,"ban":"on"}`, "criticality note ban", `"high" is not one of ` + levels},
		{shop, `{"criticality":3}`, "criticality", ""},
		{gold, `{"criticality":""}`, "criticality", `"" is not one of ` + levels + none},
		{settings, `{"default":{"criticality":"","hide_headers":5}}`, "default.hide_headers default.criticality", ""},
		{tried, `{"user":[{"requests":1}],"criticality":""}`, "criticality", ""},
		// Requests over the limits.
		{gold, `{"over_limit":"wait"}`, "over_limit", ""},
		{shop, `{"over_limit":""}`, "over_limit", ""},
		{shop, `{"over_limit":"reuse","trusted":true}`, "over_limit", ""},
		{settings, `{"default":{"over_limit":""}}`, "default.over_limit", ""},
		{gold, `{"max_wait":"soon"}`, "max_wait", ""},
		{gold, `{"max_wait":"11s"}`, "max_wait", ""},
		{gold, `{"max_waiting":3}`, "max_waiting", ""},
		{gold, `{"max_wait":"2s","max_waiting":0}`, "max_waiting", ""},
		{gold, `{"user":[{"requests":1,"window":"1s"}],"max_wait":"2s"}`, "max_wait", ""},
		{shop, `{"max_wait":"2s","trusted":true}`, "max_wait", ""},
		{shop, `{"max_wait":"2s","over_limit":"reuse"}`, "max_wait", ""},
		{settings, `{"default":{"max_waiting":3}}`, "default.max_waiting", ""},
		{settings, `{"default":{"max_wait":"-1s"}}`, "default.max_wait", ""},
		{settings, `{"default":{"user":[{"requests":1,"window":"1s"}],"client":[{"requests":1,"window":"1s"}],"max_wait":"2s"}}`, "default.max_wait default.max_wait", ""},
		{shop, `{"trusted":true,"mode":"loud","ban":{"denials":0,"for":"2h","max":"1h"}}`, "mode ban ban.denials ban.max", ""},
		{shop, `{"ban":{"bans":1}}`, "ban.bans", ""},
		{settings, `{"default":{"ban":{"factor":0.5,"within":"0s"}}}`, "default.ban.within default.ban.factor", ""},
		{tried, `{"client":[{"requests":3,"window":"1s"}],"ban":{"denials":0},"max_wait":"5s","over_limit":"reuse"}`, "max_wait max_wait ban.denials", ""},
		// Lists.
		{shop, `{"user":[]}`, "user", "at least one"},
		{gold, `{"total":[]}`, "total", "at least one"},
		{shop, `{"source":[]}`, "source", "at least one"},
		{tried, `{}`, "user", "needs limits"},
		{tried, `{"ban":{"denials":2}}`, "user", "needs limits"},
		{ada, `{}`, "user", "needs at least one limit"},
		{ada, `{"user":[]}`, "user", "needs at least one limit"},
		{shop, `{"user":[{},{}]}`, "user[1].name", "user[0]"},
		{shop, `{"user":[` + strings.Repeat("{},", 8) + `{}]}`, "user user[1].name user[2].name user[3].name user[4].name user[5].name user[6].name user[7].name user[8].name", "maximum of 8"},
		{gold, `{"client":[{"requests":0}]}`, "client[0].requests", "not between 1 and 1000000000"},
		{settings, `{"default":{"user":[{"strict":true,"on_outage":"share"}]}}`, "default.user[0].on_outage", `a strict limit must have "deny"`},
		{settings, `{"default":{"hide_headers":1,"source":[{"name":"a","requests":-1}]}}`, "default.hide_headers default.source[0].requests", ""},
		{tried, `{"user":[{"strict":true,"lease_wait":"6s"}]}`, "user[0].lease_wait", "between 1ms and 5s"},
		{ada, `{"user":[{"grants":["x","y"]}]}`, "user[0].grants[0] user[0].grants[1]", ""},
		{
			shop,
			`{"user":[{"grants":[]},{"name":"b","grants":["password","implicit"]},{"name":"c","grants":["client_credentials"]},
				{"name":"d","grants":"password"},{"name":"e","grants":[1]},{"name":"f","grants":["password","password"]}]}`,
			"user[0].grants user[1].grants[1] user[2].grants[0] user[3].grants user[4].grants[0] user[5].grants[1]", "",
		},
		// All of it. An odd name is quoted, because its dots would look like separators.
		{
			shop,
			`{"zzz":1,"note":5,"user":[{"a.b":1,"window":1,"Name":"x","requests":"a"},7],"hide_headers":1,"client":[],"[0]":1,"mode":"x","client_id":"app"}`,
			`zzz note user[0]["a.b"] user[0].window user[0].Name user[0].requests user[1] hide_headers ["[0]"] client_id mode client`, "",
		},
		{
			settings, `{"a.b":1,"note":"\n","default":{"x":1,"hide_headers":1,"client":5,"user":[]},"canary_percent":"x","mode":1}`,
			`["a.b"] default.x default.hide_headers default.client canary_percent mode note default.user`, "",
		},
	} {
		a := w.put(tt.path, tt.body).is(http.StatusUnprocessableEntity)
		check.Equal(t, tt.path+" "+tt.body, fieldsOf(a), tt.fields)
		if got := a.at("errors", 0, "detail").(string); !strings.Contains(got, tt.says) {
			t.Errorf("%s: the detail %q does not say %q", tt.body, got, tt.says)
		}
	}
	for _, path := range []string{shop, gold, tried} {
		a := w.put(path, `{"note":"\u0007","user":[{"requests":50,"name":"x"}],"client":[{"grants":["password"]}],
			"total":[{"name":"t","requests":500,"grants":["password"]}],
			"source":[{"name":"x"},{},{"name":"t"},{"name":"z","strict":true,"on_outage":"deny","lease_wait":"50ms","grants":["refresh_token"]}]}`).is(http.StatusUnprocessableEntity)
		check.Equal(t, path, fieldsOf(a), "note client[0].grants source[3].grants source[1].name source[3].strict source[0].name source[1].name total[0].grants total[0].name")
		a = w.put(path, `{"user":[{"requests":50}],"total":[{"name":"x","requests":49},{"requests":60},{"name":"z","strict":true,"on_outage":"deny","lease_wait":"50ms"}]}`).is(http.StatusUnprocessableEntity)
		check.Equal(t, path, fieldsOf(a), "total[1].name total[2].strict total[0].requests total[1].name")
	}
	check.Equal(t, "version", w.policies.Snapshot().Version(), 1)
	w.put("/tiers/"+strings.Repeat("x", 65), `{}`).is(http.StatusNotFound).says("name has more than 64 characters")
	w.create("/policies/nobody/users/ada", `{"user":[{"requests":1}]}`).is(http.StatusNotFound)
	w.send(request{method: http.MethodPut, path: "/tiers/silver", token: reader, ifNoneMatch: "*", body: "{}"}).is(http.StatusForbidden)
	w.send(request{method: http.MethodPut, path: "/tiers/silver", token: writer, body: "{}"}).is(http.StatusPreconditionRequired)
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

func TestTheAnswerDoesNotGrowWithTheProblems(t *testing.T) {
	w := newWorld(t)
	a := w.put("/policies/shop", `{"user":[`+strings.Repeat("5,", 30_000)+`5]}`).is(422)
	check.Equal(t, "problems", len(a.at("errors").([]any)), fielderr.Most+1)
	check.Equal(t, "the last", a.at("errors", fielderr.Most, "detail"), any("more problems are not shown"))
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
		{"no JSON", request{body: "mode: off"}, 400, "is not valid JSON: line 1, column 1: "},
		{"empty", request{contentType: "application/json"}, 400, "unexpected end"},
		{"cut off", request{body: `{"mode":`}, 400, "unexpected end"},
		{"two values", request{body: `{} {}`}, 400, "unexpected text after"},
		{"a name twice", request{body: `{"trusted":false,"trusted":true}`}, 400, `line 1, column 18: duplicate name "trusted"`},
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
		{"a long reason", request{path: "/policies/shop?reason=" + strings.Repeat("x", 501), body: "{}"}, 422, "maximum of 500"},
		{"a limit of zero", request{method: "GET", path: "/audit?limit=0"}, 422, "from 1 to 1000"},
		{"a limit that is none", request{method: "GET", path: "/top?limit=many"}, 422, "from 1 to 100"},
		{"another method", request{method: "POST", path: "/settings", body: "{}"}, 405, "POST"},
		{"another path", request{method: "GET", path: "/setting"}, 404, "openapi.json"},
		{"deeper down", request{method: "GET", path: "/policies/shop/user"}, 404, "openapi.json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			r := request{method: "PUT", path: "/policies/shop", token: writer, ifMatch: etag, body: tt.r.body}
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
	check.Equal(t, "version", w.policies.Snapshot().Version(), 0)
}
