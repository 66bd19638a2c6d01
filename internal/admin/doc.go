// Package admin is the operators' HTTP API, under /admin/v1 on a listener of
// its own: limits changed while the server runs, live counters, who would be
// hit by a change, the trail of all changes, and the state of every instance.
//
// Nothing is answered without a bearer token of this server whose audience is
// the admin API and whose scope is ratelimit:read, or ratelimit:write for a
// change. Every change of a resource needs If-Match with the ETag that was
// read, so that two operators cannot overwrite each other; it is validated as
// a whole, stored together with its audit entry, and in force on every
// instance at its next look at the store. With ?validate=true nothing is
// changed, and the answer says what the change would do and whom it would hit.
//
// Errors are problem details (RFC 9457) that name the field and the allowed
// range. The API describes itself at /admin/v1/openapi.json; a test holds that
// document against the handlers.
//
// The package never touches a store itself: it changes policies through
// [clientcfg.PolicySource] and reads through the small interfaces in [Options].
//
//	api, err := admin.New(admin.Options{Policies: source, Tokens: service, …})
//	…
//	mux.Handle("/admin/", api)
//
// A change, worked through:
//
//	GET /admin/v1/policies/shop          200, ETag: "0-5f2c…"
//	PATCH /admin/v1/policies/shop?reason=ticket+4711
//	If-Match: "0-5f2c…"
//	{"user": [{"name": "per-minute", "requests": 10, "window": "60s"}]}
//	                                     200, ETag: "8-91d0…", in force
//	the same again                       412: the policy has changed since
package admin
