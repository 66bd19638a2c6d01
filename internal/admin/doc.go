// Package admin is the HTTP API for operators, under /admin/v1 on its own listener: limits that can
// be changed at runtime, live counters, the clients that a change would hit, the audit trail, and
// the state of every instance.
//
// Every request needs a bearer token of this server with the audience of the admin API and the
// scope ratelimit:read, or ratelimit:write for a change. A change of a resource needs If-Match with
// the ETag that was read, so two operators cannot overwrite each other's changes. A change is
// validated as a whole, stored together with its audit entry, and in force on every instance after
// its next refresh. With ?validate=true nothing is changed, and the response shows the effect of
// the change and the clients that it would hit.
//
// Errors are problem details (RFC 9457) that name the field and the allowed range. The documents
// are in package adminapi. The OpenAPI document at /admin/v1/openapi.json is generated from the table
// of routes, the types of their bodies and the comments of these types; tests compare it with every
// response. After a change of any of them, run go generate ./internal/admin.
//
// The package never accesses a store directly. It changes policies through [clientcfg.PolicySource]
// and reads through the interfaces in [Options].
//
//	api, err := admin.New(admin.Options{Policies: source, Tokens: service, …})
//	…
//	mux.Handle("/admin/", api)
//
// A worked example of a change:
//
//	GET /admin/v1/policies/shop          200, ETag: "0-5f2c…"
//	PATCH /admin/v1/policies/shop?reason=ticket+4711
//	If-Match: "0-5f2c…"
//	{"user": [{"name": "per-minute", "requests": 10, "window": "60s"}]}
//	                                     200, ETag: "8-91d0…", in force
//	the same request again               412: the policy has changed since
package admin
