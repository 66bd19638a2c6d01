package admin

import "net/http"

// What the OpenAPI document says beyond the routes and the types.

var documentInfo = object{
	{"title", "oauth-server admin API"},
	{"version", "1"},
	{"description", "Limits, clients and users, changed while the server runs, with an audit trail." +
		" Every change is in force on all instances within two seconds." +
		" If a response has an Age header, the newest limits could not be read from the store, and the response shows them as they were so many seconds ago (RFC 9111 5.1)." +
		" While nothing can be read from the store, the response is 503."},
}

var securitySchemes = object{{"oauth", object{
	{"type", "http"},
	{"scheme", "bearer"},
	{"bearerFormat", "JWT"},
	{"description", "Access token of this server with the audience urn:oauth-server:admin and the scope that the operation names." +
		" ratelimit:write includes ratelimit:read, and registrations:write includes registrations:read. The registrations scopes are for clients and users."},
}}}

var problemTexts = map[int]string{
	http.StatusBadRequest:            "Malformed: the body is not JSON or has a name twice, or the query cannot be read.",
	http.StatusUnauthorized:          "No valid token for this API.",
	http.StatusForbidden:             "The token lacks the scope, or its user is not an operator or may only read.",
	http.StatusNotFound:              "There is no such client, or nothing is set here.",
	http.StatusConflict:              "The change would lock out an operator, the name exists already, the stored value cannot be read, the operation is not possible for this one, or other changes kept getting in first.",
	http.StatusPreconditionFailed:    "If-Match: the state has changed since it was read, or with * nothing is there.",
	http.StatusRequestEntityTooLarge: "The body has more than 64 KiB, or 1 MiB for several changes.",
	http.StatusUnsupportedMediaType:  "This method does not take the media type.",
	http.StatusUnprocessableEntity:   "Invalid values. Each one is named with its field and the allowed range.",
	http.StatusPreconditionRequired:  "If-Match is missing.",
	http.StatusTooManyRequests:       "Too many invalid tokens from this address.",
	http.StatusServiceUnavailable:    "The store does not answer.",
}

// special are the parameters that mean something else in one operation.
var special = map[string]string{
	"listUsers.limit": "some.limit", "listClients.limit": "some.limit", "listAudit.limit": "some.limit", "listBans.limit": "some.limit",
	"getCounters.limit": "some.limit", "getChanges.limit": "changes.limit", "getTop.limit": "top.limit",
	"getUserHash.username": "required.username", "restore.file": "required.file",
}

// parameterTexts has the parameters by name. A word and a dot before the name say where it is, or in
// which operations.
var parameterTexts = map[string]struct{ schema, text string }{
	"path.client_id": {`{"type":"string","maxLength":128}`, ""},
	"path.username":  {`{"type":"string","maxLength":256}`, "The user, in any spelling that works for signing in."},
	"path.name":      {`{"type":"string","maxLength":64}`, ""},
	"path.id":        {`{"type":"string"}`, ""},
	"path.version":   {`{"type":"integer","minimum":1}`, "Number of the change in the audit trail."},

	"If-Match":      {`{"type":"string"}`, "ETag that was read. A change needs it, or If-None-Match: *, but not with validate=true."},
	"If-None-Match": {`{"type":"string"}`, "* to make what does not exist yet."},

	"validate": {`{"type":"boolean"}`, "true: change nothing, and show the effect of the change."},
	"reason":   {`{"type":"string","maxLength":500}`, "Reason for the change, for the audit trail."},
	"for":      {`{"type":"string"}`, "How long the change lasts, from 1m to 30d: 90m, 2h, 7d. Then the former value returns, unless it was changed since. Absent: permanent."},
	"confirm":  {`{"type":"string"}`, "The client_id or username again, to make the change although it may lock operators out."},

	"after":         {`{"type":"string"}`, "Only items after this one: next of the page before."},
	"limit":         {`{"type":"integer","minimum":1,"maximum":1000,"default":1000}`, "The most items of the page."},
	"some.limit":    {`{"type":"integer","minimum":1,"maximum":1000,"default":100}`, "The most items of the page."},
	"top.limit":     {`{"type":"integer","minimum":1,"maximum":100,"default":20}`, "The most items of each list."},
	"changes.limit": {`{"type":"integer","minimum":1,"maximum":10000}`, "The most targets of the page. Absent: all."},
	"prefix":        {`{"type":"string"}`, "Only names that start with this."},
	"before":        {`{"type":"integer","minimum":1}`, "Only entries of lower versions."},
	"target":        {`{"type":"string"}`, "Only entries of this target, such as policies/shop."},
	"grant_type":    {`{"type":"string"}`, "Only clients that may use this grant."},
	"label": {
		`{"type":"array","items":{"type":"string","pattern":"^[a-z0-9._-]{1,63}(=[A-Za-z0-9._-]{0,63})?$"}}`,
		"Only clients with this label: name=value, or a name with any value. May be repeated, for clients that have all.",
	},
	"client_id": {`{"type":"string"}`, "Only this client."},
	"username": {
		`{"type":"string"}`,
		"Only this user, in any spelling. Empty: the client itself. A space and total: its total. A space, source, a space and an address, or a /64 as counters show it: that source.",
	},
	"mode": {
		`{"type":"string","enum":["enforce","dry_run"],"default":"enforce"}`,
		"enforce: bans that are in force on all instances. dry_run: bans that would be, on the instance that answers.",
	},
	"ended":             {`{"type":"boolean","default":false}`, "true: also bans that are over and remembered."},
	"forget":            {`{"type":"boolean","default":false}`, "true: the next ban is a first one. Then a ban that is over can be lifted too."},
	"sort":              {`{"type":"string","enum":["requests","wasted","shed"],"default":"requests"}`, "Order of the talkers: by requests, or by wasted tokens or shed requests, and then only clients with any."},
	"required.username": {`{"type":"string"}`, "The user, in any spelling that works for signing in. It need not exist."},
	"required.file":     {`{"type":"string"}`, "Name of the file, in the folder of the data file."},
}

// examples are bodies of the main operations. TestExamples sends them.
var examples = map[string]string{
	"putPolicy":    `{"user":[{"name":"per-minute","requests":10,"window":"60s"},{"name":"per-second","requests":2,"window":"1s"}],"mode":"dry_run"}`,
	"patchPolicy":  `{"trusted":true,"user":null}`,
	"putSettings":  `{"mode":"enforce","canary_percent":10,"default":{"user":[{"requests":100,"window":"60s"}]}}`,
	"putCandidate": `{"user":[{"requests":20,"window":"60s"}],"note":"half of today"}`,
	"createClient": `{"client_id":"billing","grant_types":["client_credentials"],"scope":"orders:read"}`,
	"addSecret":    `{"overlap":"24h"}`,
	"createUser":   `{"username":"grace","password":"correct horse battery staple","operator":"read"}`,
	"makeChanges":  `{"changes":[{"target":"policies/shop","value":{"trusted":true}},{"target":"candidates/app","value":null}]}`,
}
