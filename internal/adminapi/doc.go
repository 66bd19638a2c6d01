// Package adminapi is the documents of the admin API (docs/operating.md) as JSON:
// internal/admin writes them, internal/adminclient and the command line read them, and
// openapi.json describes them.
//
// A client reads them with encoding/json, so that fields of a newer server do no harm.
// The server reads what operators send more strictly, and elsewhere: see internal/admin.
package adminapi
