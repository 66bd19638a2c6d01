// Package adminapi has the JSON documents of the admin API (docs/operating.md). internal/admin
// writes them, internal/admin/adminclient and the command line read them, and openapi.json describes
// them.
//
// Clients read them with encoding/json and ignore the fields of newer servers. [ReadSettings],
// [ReadTier], [ReadPolicy], [ReadOverride] and [ReadCandidate] parse the documents that operators
// send more strictly. A file of limits uses the same documents.
package adminapi
