// Package adminapi is the documents of the admin API (docs/operating.md) as JSON:
// internal/admin writes them, internal/adminclient and the command line read them, and
// openapi.json describes them.
//
// A client reads them with encoding/json, so that fields of a newer server do no harm. What operators send is read more
// strictly, by [ReadSettings], [ReadTier], [ReadPolicy], [ReadOverride] and [ReadCandidate]; a file of limits has the same
// documents.
package adminapi
