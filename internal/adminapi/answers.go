package adminapi

import (
	"encoding/json"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/registry"
)

// Activity is the decisions of the last ten minutes: for one client, or for all clients that a
// candidate for the default limits affects.
type Activity struct {
	Since time.Time `json:"since"`
	activity.Counts
	// Clients are the clients with the most requests that were or would have been denied. It is set
	// only for the candidate for the default limits.
	Clients []ClientCounts `json:"clients,omitempty"`
}

// ClientCounts is the decisions about one client's requests.
type ClientCounts struct {
	ClientID string `json:"client_id"`
	activity.Counts
}

// Policies is a page of the policies.
type Policies struct {
	Version  int64        `json:"version"`            // of all policies; the whole page shows this version
	LeftOut  int          `json:"left_out,omitempty"` // targets that differ from that version: see PoliciesInForce
	Policies []PolicyView `json:"policies"`
	Next     string       `json:"next,omitempty"` // value of after for the next page
	// Unregistered lists the page's unregistered clients, by client_id.
	Unregistered []string `json:"unregistered,omitempty"`
}

// Candidates is a page of the candidates.
type Candidates struct {
	Version    int64           `json:"version"` // see Policies
	LeftOut    int             `json:"left_out,omitempty"`
	Candidates []CandidateView `json:"candidates"`
	Next       string          `json:"next,omitempty"` // value of after for the next page
	// Unregistered lists the page's unregistered clients, by client_id.
	Unregistered []string `json:"unregistered,omitempty"`
}

// Clients is a page of the registered clients.
type Clients struct {
	Since   time.Time `json:"since"` // of the activity
	Clients []Client  `json:"clients"`
	Next    string    `json:"next,omitempty"` // value of after for the next page
	// Unregistered are unregistered clients with a policy in the configuration file; on the last
	// page. [UnregisteredClients] also include the clients that operators have set limits for.
	Unregistered []string `json:"unregistered,omitempty"`
	// Unreadable are clients with unreadable records, which are not served; only on the last page.
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
	Source    string    `json:"source"`         // of the policy: api, file or none
	Until     time.Time `json:"until,omitzero"` // end of a temporary policy
	Candidate bool      `json:"candidate"`      // it has its own candidate
	Effective Effective `json:"effective"`
}

// UnregisteredClients is a page of the unregistered clients with limits: a policy, limits of single
// users or a candidate, set by operators or in the configuration file.
type UnregisteredClients struct {
	Version      int64                `json:"version"` // see Policies
	LeftOut      int                  `json:"left_out,omitempty"`
	Unregistered []UnregisteredClient `json:"unregistered"`
	Next         string               `json:"next,omitempty"` // value of after for the next page
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
	// Incomplete is set if the counts of other instances could not be read, or if there are more
	// than the server examines.
	Incomplete bool `json:"incomplete"`
}

// Counter is one live counter: a client or one of its users, under one limit.
type Counter struct {
	ClientID string `json:"client_id"`
	// Username is null for the client itself (client_credentials), for a total and for a source.
	Username  *string `json:"username"`
	Total     bool    `json:"total,omitempty"`  // of the client over all its users
	Source    string  `json:"source,omitempty"` // of the client from this address; an IPv6 network is a /64
	Candidate bool    `json:"candidate"`        // counted for a candidate, never enforced
	Limit     Limit   `json:"limit"`
	Known     int64   `json:"g"` // known to be in the database
	InFlight  int64   `json:"i"` // admitted here, not yet known to be in the database
	Estimate  float64 `json:"estimate"`
	Remaining int64   `json:"remaining"`
	Usage     float64 `json:"usage"` // share of the limit
	// FreeAt is when the next request passes if no others are sent; null if one would pass now.
	FreeAt *time.Time `json:"free_at"`
	// LastSeen is when this instance last decided a request on it; null if never.
	LastSeen *time.Time `json:"last_seen"`
	Instance string     `json:"instance,omitempty"`
}

// Top lists the clients with the most requests, the keys nearest their limits and the users denied
// most: of all clients, or of one.
type Top struct {
	Since     time.Time      `json:"since"` // of Talkers and Denied
	Talkers   []ClientCounts `json:"talkers"`
	NearLimit []Counter      `json:"near_limit"`
	Denied    []DeniedUser   `json:"denied"`
	// DeniedOthers are the denials of users missing from Denied; only if Top is about one client.
	DeniedOthers *activity.Denials `json:"denied_others,omitempty"`
}

// DeniedUser is a user of a client with denied requests, or with requests that would have been
// denied.
type DeniedUser struct {
	ClientID string `json:"client_id"`
	// Username is null for the client itself (client_credentials).
	Username *string `json:"username"`
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
	Version  int64              `json:"version"` // number of the entry, and the new version of the policies if it changes them
	ID       string             `json:"id"`
	At       time.Time          `json:"at"`
	Actor    clientcfg.Actor    `json:"actor"`
	Action   string             `json:"action"`
	Target   string             `json:"target"`
	Reason   string             `json:"reason,omitempty"`
	Instance string             `json:"instance,omitempty"`
	Until    time.Time          `json:"until,omitzero"`
	Before   json.RawMessage    `json:"before"`
	After    json.RawMessage    `json:"after"`
	More     []clientcfg.Change `json:"more,omitempty"`
	// Outcome is "unknown" if the change may or may not have been made.
	Outcome    string `json:"outcome,omitempty"`
	Unreadable string `json:"unreadable,omitempty"` // reason; empty if readable
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

// MarshalJSON implements [json.Marshaler].
func (e AuditEntry) MarshalJSON() ([]byte, error) {
	if e.Unreadable == "" {
		type plain AuditEntry // without this method
		return json.Marshal(plain(e))
	}
	return json.Marshal(struct {
		Version    int64           `json:"version"`
		ID         string          `json:"id,omitempty"`
		At         time.Time       `json:"at,omitzero"`
		Actor      clientcfg.Actor `json:"actor,omitzero"`
		Action     string          `json:"action,omitempty"`
		Target     string          `json:"target,omitempty"`
		Reason     string          `json:"reason,omitempty"`
		Instance   string          `json:"instance,omitempty"`
		Unreadable string          `json:"unreadable"`
	}{e.Version, e.ID, e.At, e.Actor, e.Action, e.Target, e.Reason, e.Instance, e.Unreadable})
}

// OutcomeUnknown is the outcome of a change that may or may not have been made.
const OutcomeUnknown = "unknown"

// Rehearsal is the answer to ?validate=true: the effect of a change.
type Rehearsal struct {
	Valid  bool            `json:"valid"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// Until is the end of the change, and WasUntil the end of the value that it replaces. Zero:
	// permanent.
	Until    time.Time `json:"until,omitzero"`
	WasUntil time.Time `json:"was_until,omitzero"`
	Effect   Effect    `json:"effect"`
}

// Effect shows which clients a change would have affected if made ten minutes earlier.
type Effect struct {
	// Widens is set if the change can deny more than before, to any client. Only then can it affect
	// a client that was not affected before.
	Widens bool `json:"widens"`
	// Since is the start of complete figures. It is later than ten minutes ago if limits were
	// changed or tried, or the server was started, within that time.
	Since time.Time `json:"since"`
	// Clients is the number of clients that sent requests in the last ten minutes.
	Clients int `json:"clients"`
	// Hit are the clients with requests that would have been denied, most first: at most 1000 of
	// HitTotal.
	Hit      []Hit `json:"hit"`
	HitTotal int   `json:"hit_total"`
	// Unknown are clients with requests that the server has no data about: at most 1000 of
	// UnknownTotal.
	Unknown      []Unknown `json:"unknown"`
	UnknownTotal int       `json:"unknown_total"`
	// Incomplete is set if there were more clients than the server counts.
	Incomplete bool `json:"incomplete"`
	// Unlimited are grants with requests that were limited by user and no longer are.
	Unlimited []string `json:"unlimited,omitempty"`
	// Warnings are sentences about clients with possibly misspelt names.
	Warnings []string `json:"warnings,omitempty"`
	Summary  string   `json:"summary"` // everything in one sentence, except the warnings
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
	// Conflict is set if earlier changes caused the refusal of this one.
	Conflict *Conflict `json:"conflict,omitempty"`
}

// FieldProblem is one problem of the request.
type FieldProblem struct {
	Field  string `json:"field"` // path, such as user[0].window; empty for the whole
	Detail string `json:"detail"`
}
