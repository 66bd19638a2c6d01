package adminapi

import (
	"encoding/json"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/registry"
)

// Activity is what was decided in the last ten minutes: for one client, or for all that
// a candidate for the default limits concerns.
type Activity struct {
	Since time.Time `json:"since"`
	activity.Counts
	// Clients are those of which most was or would have been denied; only for the
	// candidate for the default limits.
	Clients []ClientCounts `json:"clients,omitempty"`
}

// ClientCounts is what was decided about one client's requests.
type ClientCounts struct {
	ClientID string `json:"client_id"`
	activity.Counts
}

// Policies is a page of the policies.
type Policies struct {
	Version  int64        `json:"version"`            // of all policies: what the whole page shows
	LeftOut  int          `json:"left_out,omitempty"` // targets that are not as in that version: see PoliciesInForce
	Policies []PolicyView `json:"policies"`
	Next     string       `json:"next,omitempty"` // value of after for the next page
	// Unregistered are those of the page whose client is not registered, by client_id.
	Unregistered []string `json:"unregistered,omitempty"`
}

// Candidates is a page of the candidates.
type Candidates struct {
	Version    int64           `json:"version"` // as above
	LeftOut    int             `json:"left_out,omitempty"`
	Candidates []CandidateView `json:"candidates"`
	Next       string          `json:"next,omitempty"` // value of after for the next page
	// Unregistered is as above.
	Unregistered []string `json:"unregistered,omitempty"`
}

// Clients is a page of the registered clients.
type Clients struct {
	Since   time.Time `json:"since"` // of the activity
	Clients []Client  `json:"clients"`
	Next    string    `json:"next,omitempty"` // value of after for the next page
	// Unregistered are clients that the configuration file has a policy for and that are not registered;
	// on the last page. [UnregisteredClients] also have those that operators have set limits for.
	Unregistered []string `json:"unregistered,omitempty"`
	// Unreadable are clients that cannot be read and are not served; only on the last page.
	Unreadable []registry.Unreadable `json:"unreadable,omitempty"`
}

// Client is a registered client with what applies to it and what was decided about it. At a gateway it may also be one of the
// server behind that, of which only the ID is known.
type Client struct {
	clientcfg.Metadata
	IssuedAt int64 `json:"client_id_issued_at"` // seconds since 1970; 0: it is not registered here
	Public   bool  `json:"public"`
	Admin    bool  `json:"admin"` // it may change limits
	Applied
	Activity activity.Counts `json:"activity"`
}

// Applied is what applies to a client, and where it comes from.
type Applied struct {
	Source    string    `json:"source"`         // of its policy: api, file or none
	Until     time.Time `json:"until,omitzero"` // when its policy ends by itself
	Candidate bool      `json:"candidate"`      // one of its own
	Effective Effective `json:"effective"`
}

// UnregisteredClients is a page of the clients that are not registered and have limits: a policy, limits of
// single users or a candidate, set by operators or in the configuration file.
type UnregisteredClients struct {
	Version      int64                `json:"version"` // as above
	LeftOut      int                  `json:"left_out,omitempty"`
	Unregistered []UnregisteredClient `json:"unregistered"`
	Next         string               `json:"next,omitempty"` // value of after for the next page
}

// UnregisteredClient is a client that is not registered, with what will apply to it when it is.
type UnregisteredClient struct {
	ClientID string `json:"client_id"`
	Applied
}

// Counters is the live counters of a client and its users.
type Counters struct {
	ClientID string    `json:"client_id"`
	Instance string    `json:"instance"`
	At       time.Time `json:"at"`
	Counters []Counter `json:"counters"`
	// Incomplete is set if the counts of other instances could not be read, or are
	// more than are looked at.
	Incomplete bool `json:"incomplete"`
}

// Counter is one live counter: a client or one of its users, under one limit.
type Counter struct {
	ClientID string `json:"client_id"`
	// Username is null for the client itself (client_credentials), for a total and for a source.
	Username  *string `json:"username"`
	Total     bool    `json:"total,omitempty"`  // of the client over all its users
	Source    string  `json:"source,omitempty"` // of the client from this address; an IPv6 network is that of a /64
	Candidate bool    `json:"candidate"`        // counted for a candidate, never enforced
	Limit     Limit   `json:"limit"`
	Known     int64   `json:"g"` // known to be in the database
	InFlight  int64   `json:"i"` // admitted here, not known to be there
	Estimate  float64 `json:"estimate"`
	Remaining int64   `json:"remaining"`
	Usage     float64 `json:"usage"` // share of the limit
	// FreeAt is when the next request passes if nothing else is sent; null if one
	// would pass now.
	FreeAt *time.Time `json:"free_at"`
	// LastSeen is when this instance last decided a request on it; null if it never did.
	LastSeen *time.Time `json:"last_seen"`
	Instance string     `json:"instance,omitempty"`
}

// Top is the clients with most requests, the keys nearest their limits and the users denied most: of all
// clients, or of one.
type Top struct {
	Since     time.Time      `json:"since"` // of the talkers and of the denied
	Talkers   []ClientCounts `json:"talkers"`
	NearLimit []Counter      `json:"near_limit"`
	Denied    []DeniedUser   `json:"denied"`
	// DeniedOthers is what is of no user in Denied; only if it is about one client.
	DeniedOthers *activity.Denials `json:"denied_others,omitempty"`
}

// DeniedUser is a user of a client of whom requests were denied, or would have been.
type DeniedUser struct {
	ClientID string `json:"client_id"`
	// Username is null for the client itself (client_credentials).
	Username *string `json:"username"`
	UserHash string  `json:"user_hash,omitempty"` // what stands for the user in the log
	activity.Denials
}

// UserHash is what stands for a user in the log.
type UserHash struct {
	Username string `json:"username"`
	UserHash string `json:"user_hash"`
}

// Audit is a page of the audit trail, the newest entry first.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
	Next    int64        `json:"next,omitempty"` // value of before for the next page
}

// AuditEntry is an entry of the trail. Of one that cannot be read the version is known at least.
type AuditEntry struct {
	Version  int64              `json:"version"` // number of the entry, and the version of the policies if it changes them
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
	// Outcome is "unknown" if it is not known whether the change was made.
	Outcome    string `json:"outcome,omitempty"`
	Unreadable string `json:"unreadable,omitempty"` // why; empty if it can be read
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

// OutcomeUnknown is the outcome of a change of which it is not known whether it was made.
const OutcomeUnknown = "unknown"

// Rehearsal is the answer to ?validate=true: what a change would do.
type Rehearsal struct {
	Valid  bool            `json:"valid"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	// Until is when the change would end by itself, and WasUntil when that ends which it replaces. Zero:
	// never.
	Until    time.Time `json:"until,omitzero"`
	WasUntil time.Time `json:"was_until,omitzero"`
	Effect   Effect    `json:"effect"`
}

// Effect is which clients a change would have hit, had it been made ten minutes earlier.
type Effect struct {
	// Widens is set if more can be denied than before, of any client: only then can a
	// client be hit that was not before.
	Widens bool `json:"widens"`
	// Since is from when on the figures are complete: later than ten minutes ago where
	// limits were changed or tried, or the server was started, since.
	Since time.Time `json:"since"`
	// Clients is how many clients sent requests in the last ten minutes.
	Clients int `json:"clients"`
	// Hit are the clients of which something would have been denied, those with the
	// most first: at most 1000 of HitTotal.
	Hit      []Hit `json:"hit"`
	HitTotal int   `json:"hit_total"`
	// Unknown are clients that sent requests of which nothing is known: at most 1000 of UnknownTotal.
	Unknown      []Unknown `json:"unknown"`
	UnknownTotal int       `json:"unknown_total"`
	// Incomplete is set if there were more clients than are counted.
	Incomplete bool `json:"incomplete"`
	// Unlimited are grants of which requests were limited by user and are not any more.
	Unlimited []string `json:"unlimited,omitempty"`
	// Warnings are sentences about clients that may be misspelt.
	Warnings []string `json:"warnings,omitempty"`
	Summary  string   `json:"summary"` // all of it in one sentence, but for the warnings
}

// Hit is a client of which requests would have been denied.
type Hit struct {
	ClientID string `json:"client_id"`
	Requests uint64 `json:"requests"`
	AtLeast  bool   `json:"at_least,omitempty"` // there may have been more
}

// Unknown is a client of which it is not known what would have been denied.
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
	// Conflict is there if a change was refused because of others.
	Conflict *Conflict `json:"conflict,omitempty"`
}

// FieldProblem is one thing that is wrong with what was sent.
type FieldProblem struct {
	Field  string `json:"field"` // where, such as user[0].window; empty for the whole
	Detail string `json:"detail"`
}
