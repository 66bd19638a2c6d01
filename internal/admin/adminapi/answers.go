package adminapi

import (
	"encoding/json"
	"time"

	"oauth-server/internal/admin/registry"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
)

// Activity is the decisions of the last ten minutes: for one client, or for all clients that a
// candidate for the default limits affects.
type Activity struct {
	Since time.Time `json:"since"` // start of the figures
	activity.Counts
	// The clients with the most requests that were or would have been denied. Only for the
	// candidate for the default limits.
	Clients []ClientCounts `json:"clients,omitempty"`
}

// ClientCounts is the decisions about one client's requests.
type ClientCounts struct {
	ClientID string `json:"client_id"`
	activity.Counts
}

// Policies is a page of the policies.
type Policies struct {
	Listed
	Policies     []Policy `json:"policies"`
	Unregistered []string `json:"unregistered,omitempty"` // the clients of this page that are not registered
}

// Candidates is a page of the candidates.
type Candidates struct {
	Listed
	Candidates   []Candidate `json:"candidates"`
	Unregistered []string    `json:"unregistered,omitempty"` // the clients of this page that are not registered
}

// Clients is a page of the registered clients.
type Clients struct {
	Since   time.Time `json:"since"` // of the activity
	Clients []Client  `json:"clients"`
	Next    string    `json:"next,omitempty"` // value of after for the next page
	// unregistered clients with a policy in the configuration file; on the last page
	Unregistered []string `json:"unregistered,omitempty"`
	// clients with unreadable records, which are not served; on the last page
	Unreadable []registry.Unreadable `json:"unreadable,omitempty"`
}

// Client is a registered client with its limits and the decisions about it. At a gateway it may
// also be a client of the upstream server, with only its ID known.
type Client struct {
	Registration      // IssuedAt is 0 if it is not registered here
	Public       bool `json:"public"`
	Admin        bool `json:"admin"` // it may change limits
	Applied
	Activity activity.Counts `json:"activity"`
}

// Applied is the limits in force for a client, and their source.
type Applied struct {
	Source    string    `json:"source" schema:"enum=api|file|none"` // where the policy comes from
	Until     time.Time `json:"until,omitzero"`                     // end of a temporary policy; absent: permanent
	Candidate bool      `json:"candidate"`                          // it has its own candidate
	Effective Effective `json:"effective"`
}

// UnregisteredClients is a page of the unregistered clients with limits: a policy, limits of single
// users or a candidate, set by operators or in the configuration file.
type UnregisteredClients struct {
	Listed
	Unregistered []UnregisteredClient `json:"unregistered"`
}

// UnregisteredClient is an unregistered client, with the limits that will apply once it is
// registered.
type UnregisteredClient struct {
	ClientID string `json:"client_id"`
	Applied
}

// Counters are the live counters of a client and its users.
type Counters struct {
	ClientID string    `json:"client_id"`
	Instance string    `json:"instance"`
	At       time.Time `json:"at"`
	Counters []Counter `json:"counters"`
	// The counts of other instances could not be read, or there are more than the server examines.
	Incomplete bool `json:"incomplete"`
}

// Counter is one live counter: a client or one of its users, under one limit.
type Counter struct {
	ClientID string `json:"client_id"`
	// null for the client itself (client_credentials), for a total and for a source
	Username  *string         `json:"username"`
	Total     bool            `json:"total,omitempty"`  // of the client over all its users
	Source    string          `json:"source,omitempty"` // of the client from this address; an IPv6 network is a /64
	Candidate bool            `json:"candidate"`        // counted for a candidate, never enforced
	Limit     ratelimit.Limit `json:"limit"`            // at the last request: a change shows with the next one
	Known     int64           `json:"g"`                // known to be in the database
	InFlight  int64           `json:"i"`                // admitted here, not yet known to be in the database
	Estimate  float64         `json:"estimate"`         // requests in the window
	Remaining int64           `json:"remaining"`        // requests that would pass now
	Usage     float64         `json:"usage"`            // share of the limit
	// when the next request passes if no others are sent; null: one would pass now
	FreeAt   *time.Time `json:"free_at"`
	LastSeen *time.Time `json:"last_seen"`          // when this instance last decided a request on it; null: never
	Instance string     `json:"instance,omitempty"` // the instance that reports the counter
}

// Top lists the clients with the most requests, the keys nearest their limits and the users denied
// most: of all clients, or of one.
type Top struct {
	Since     time.Time      `json:"since"` // start of talkers and denied
	Talkers   []ClientCounts `json:"talkers"`
	NearLimit []Counter      `json:"near_limit"`
	Denied    []DeniedUser   `json:"denied"`
	// Denials of users missing from denied. Only in an answer about one client.
	DeniedOthers *activity.Denials `json:"denied_others,omitempty"`
}

// DeniedUser is a user of a client with denied requests, or with requests that would have been
// denied.
type DeniedUser struct {
	ClientID string  `json:"client_id"`
	Username *string `json:"username"`            // null for the client itself (client_credentials)
	UserHash string  `json:"user_hash,omitempty"` // the user's identifier in the log
	activity.Denials
}

// UserHash is the identifier of a user in the log.
type UserHash struct {
	Username string `json:"username"`
	UserHash string `json:"user_hash"`
}

// Audit is a page of the audit trail, newest entry first.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
	Next    int64        `json:"next,omitempty"` // value of before for the next page
}

// AuditEntry is an entry of the trail. An unreadable entry has at least its version.
type AuditEntry struct {
	Version int64           `json:"version"` // number of the entry, and the new version of the policies if it changes them
	ID      string          `json:"id,omitempty"`
	At      time.Time       `json:"at,omitzero"`
	Actor   clientcfg.Actor `json:"actor,omitzero"`
	Action  string          `json:"action,omitempty"`
	// settings, tiers/…, policies/…, overrides/…, candidates/…, clients/…, clients/…/counters,
	// bans/…, users/… or store
	Target   string             `json:"target,omitempty"`
	Reason   string             `json:"reason,omitempty"`
	Instance string             `json:"instance,omitempty"` // the instance that took the request
	Until    time.Time          `json:"until,omitzero"`     // end of a temporary change; absent: permanent
	Before   json.RawMessage    `json:"before,omitempty"`
	After    json.RawMessage    `json:"after,omitempty"`
	More     []clientcfg.Change `json:"more,omitempty"` // other targets of the same change
	// unknown: it is not known whether the change was made
	Outcome string `json:"outcome,omitempty" schema:"enum=unknown"`
	// why the entry cannot be read; then other parts may be absent
	Unreadable string `json:"unreadable,omitempty"`
}

// ShowEvent returns an event as the API shows it.
func ShowEvent(e *clientcfg.Event) AuditEntry {
	entry := AuditEntry{
		Version: e.Number, ID: e.ID, At: e.At, Actor: e.Actor, Action: e.Action, Target: e.Target, Reason: e.Reason, Instance: e.Instance,
		Until: e.Until, Before: e.Before, After: e.After, More: e.More,
	}
	if e.Unknown {
		entry.Outcome = OutcomeUnknown
	}
	if e.Err != nil {
		entry.Unreadable = e.Err.Error()
	}
	return entry
}

// OutcomeUnknown is the outcome of a change that may or may not have been made.
const OutcomeUnknown = "unknown"

// Rehearsal is the answer to ?validate=true: the effect of a change.
type Rehearsal struct {
	Valid    bool            `json:"valid"`
	Before   json.RawMessage `json:"before"`
	After    json.RawMessage `json:"after"`
	Until    time.Time       `json:"until,omitzero"`     // end of the change; absent: permanent
	WasUntil time.Time       `json:"was_until,omitzero"` // end of the value that it replaces; absent: permanent
	Effect   Effect          `json:"effect"`
}

// Effect shows which clients a change would have affected if made ten minutes earlier.
type Effect struct {
	// The change can deny more than before, to any client. Only then can it affect a client that
	// was not affected before.
	Widens bool `json:"widens"`
	// Start of complete figures. It is later than ten minutes ago if limits were changed or tried,
	// or the server was started, within that time.
	Since   time.Time `json:"since"`
	Clients int       `json:"clients"` // clients that sent requests in the last ten minutes
	// clients with requests that would have been denied, most first
	Hit      []Hit `json:"hit" schema:"maxItems=1000"`
	HitTotal int   `json:"hit_total"` // also those that are not listed
	// clients with requests that the server has no data about
	Unknown      []Unknown `json:"unknown" schema:"maxItems=1000"`
	UnknownTotal int       `json:"unknown_total"` // also those that are not listed
	Incomplete   bool      `json:"incomplete"`    // there were more clients than the server counts
	// grants with requests that were limited by user and no longer are
	Unlimited []string `json:"unlimited,omitempty"`
	Warnings  []string `json:"warnings,omitempty"` // sentences about clients with possibly misspelt names
	Summary   string   `json:"summary"`            // everything in one sentence, except the warnings
}

// Hit is a client with requests that would have been denied.
type Hit struct {
	ClientID string `json:"client_id"`
	Requests uint64 `json:"requests"`
	AtLeast  bool   `json:"at_least,omitempty"` // there may have been more
}

// Unknown is a client for which the server cannot tell which requests would have been denied.
type Unknown struct {
	ClientID string `json:"client_id"`
	Why      string `json:"why"`
}

// Problem is an error (RFC 9457).
type Problem struct {
	Type   string         `json:"type"` // a URN, for programs
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Detail string         `json:"detail,omitempty"`
	Errors []FieldProblem `json:"errors,omitempty"`
	// what others have changed, if that is why this change was refused
	Conflict *Conflict `json:"conflict,omitempty"`
}

// FieldProblem is one problem of the request.
type FieldProblem struct {
	Field  string `json:"field"` // path, such as user[0].window; empty for the whole
	Detail string `json:"detail"`
}
