package admin

import "net/http"

// What the OpenAPI document says beyond the routes and the types.

var documentInfo = object{
	{"title", "oauth-server admin API"},
	{"version", "1"},
	{"description", "Limits, clients and users, changed while the server runs, with an audit trail." +
		" Every change is in force on all instances within two seconds." +
		" If a response has an Age header, the store is unavailable and the response shows the limits as of that many seconds ago (RFC 9111 5.1)." +
		" If the server has nothing to show, it answers 503."},
}

var securitySchemes = object{{"oauth", object{
	{"type", "http"},
	{"scheme", "bearer"},
	{"bearerFormat", "JWT"},
	{"description", "Access token of this server with the audience urn:oauth-server:admin and the scope that the operation names." +
		" ratelimit:write includes ratelimit:read, and registrations:write includes registrations:read. The registrations scopes are for clients and users."},
}}}

var problemTexts = map[int]string{
	http.StatusBadRequest:            "Malformed: the body is not JSON or has a duplicate name, or the query is malformed.",
	http.StatusUnauthorized:          "No valid token for this API.",
	http.StatusForbidden:             "The token lacks the scope, or its user is not an operator or may only read.",
	http.StatusNotFound:              "The resource does not exist, or is not set.",
	http.StatusConflict:              "The change would lock out an operator, the name already exists, the stored value is unreadable, the operation is not possible for this resource, or concurrent changes kept coming first.",
	http.StatusPreconditionFailed:    "If-Match: the resource has changed since it was read, or for * does not exist.",
	http.StatusRequestEntityTooLarge: "The body has more than 64 KiB, or 1 MiB for several changes.",
	http.StatusUnsupportedMediaType:  "This operation does not accept the media type.",
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

	"If-Match":      {`{"type":"string"}`, "The ETag you read. A change requires it, or If-None-Match: *, unless validate=true."},
	"If-None-Match": {`{"type":"string"}`, "* to create a resource."},

	"validate": {`{"type":"boolean"}`, "true: change nothing, and show the effect of the change."},
	"reason":   {`{"type":"string","maxLength":500}`, "Reason for the change, for the audit trail."},
	"for":      {`{"type":"string"}`, "How long the change lasts, from 1m to 30d: 90m, 2h, 7d. Then the old value returns, unless the value was changed again. Absent: permanent."},
	"confirm":  {`{"type":"string"}`, "The client_id or username again, to allow a change that may lock operators out."},

	"after":         {`{"type":"string"}`, "Only items after this one: the next field of the previous page."},
	"limit":         {`{"type":"integer","minimum":1,"maximum":1000,"default":1000}`, "Maximum number of items per page."},
	"some.limit":    {`{"type":"integer","minimum":1,"maximum":1000,"default":100}`, "Maximum number of items per page."},
	"top.limit":     {`{"type":"integer","minimum":1,"maximum":100,"default":20}`, "Maximum number of items in each list."},
	"changes.limit": {`{"type":"integer","minimum":1,"maximum":10000}`, "Maximum number of targets per page. Absent: all."},
	"prefix":        {`{"type":"string"}`, "Only names that start with this."},
	"before":        {`{"type":"integer","minimum":1}`, "Only entries with lower versions."},
	"target":        {`{"type":"string"}`, "Only entries of this target, such as policies/shop."},
	"grant_type":    {`{"type":"string"}`, "Only clients that may use this grant."},
	"label": {
		`{"type":"array","items":{"type":"string","pattern":"^[a-z0-9._-]{1,63}(=[A-Za-z0-9._-]{0,63})?$"}}`,
		"Only clients with this label: name=value, or a name with any value. Repeat it to require several.",
	},
	"client_id": {`{"type":"string"}`, "Only this client."},
	"username": {
		`{"type":"string"}`,
		"Only this user, in any spelling. Empty: the client itself. \" total\": its total. \" source ADDRESS\", with an address or a /64 as in the counters: that source.",
	},
	"mode": {
		`{"type":"string","enum":["enforce","dry_run"],"default":"enforce"}`,
		"enforce: bans in force on all instances. dry_run: would-be bans on the instance that answers.",
	},
	"ended":             {`{"type":"boolean","default":false}`, "true: also ended bans that still make the next one longer."},
	"forget":            {`{"type":"boolean","default":false}`, "true: make the next ban as short as a first one. This also works for an ended ban."},
	"sort":              {`{"type":"string","enum":["requests","wasted","shed"],"default":"requests"}`, "Order of the talkers: by requests, wasted tokens or shed requests. The last two list only clients with any."},
	"required.username": {`{"type":"string"}`, "The user, in any spelling that works for signing in. The user need not exist."},
	"required.file":     {`{"type":"string"}`, "Name of the file in the directory of the data file."},
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
