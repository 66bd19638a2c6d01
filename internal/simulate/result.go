package simulate

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// Result is what came of a replay.
type Result struct {
	// From and To are the times of the first and the last request, in UTC; zero if there was none.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Total is over all clients, those included that Clients leaves out.
	Total Counts `json:"total"`
	Reach
	// Clients are sorted by how many of their requests were refused, those of most first.
	Clients []Client `json:"clients"`
	// MoreClients is how many clients Clients leaves out.
	MoreClients int `json:"more_clients,omitempty"`
	// Series is over all clients.
	Series Series `json:"series"`
	// WhatIf are the limits that were compared, in the order in which they were given. The limits that were found
	// for Targets follow.
	WhatIf  []WhatIf `json:"what_if,omitempty"`
	Targets []Target `json:"targets,omitempty"`
	// Notes are what a person should know about the figures, as sentences without a full stop.
	Notes []string `json:"notes,omitempty"`
	// Lines are how the log was read.
	Lines Lines `json:"lines"`
	// Under is what the requests were judged under, such as "the limits of limits.yaml", and Policies are the files of
	// it.
	Under    string       `json:"under,omitempty"`
	Policies []PolicyFile `json:"policies,omitempty"`
	// Found is the file of the limits that were found for Targets.
	Found string `json:"found,omitempty"`
}

// PolicyFile is a file of limits, or the rate_limit of a configuration file.
type PolicyFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Counts are requests, by what became of them. Requests is the sum of Admitted, Denied, Delayed, Reused and Banned.
type Counts struct {
	Requests uint64 `json:"requests"`
	Admitted uint64 `json:"admitted"` // at once, each with a new token
	Denied   uint64 `json:"denied"`   // by a limit
	Delayed  uint64 `json:"delayed"`  // admitted at its turn
	Reused   uint64 `json:"reused"`   // answered with the token that the client got last
	Banned   uint64 `json:"banned"`   // denied, because its key was banned
	// Failed are requests that were refused for another reason than a limit. No limit counts them, and Requests
	// does not either.
	Failed uint64 `json:"failed"`
	// Wasted are tokens that were issued while an equal one had more than half of its life left.
	Wasted uint64 `json:"wasted"`
}

// Refused is how many requests got no token because of a limit.
func (c *Counts) Refused() uint64 { return c.Denied + c.Banned }

// Issued is how many new tokens were issued.
func (c *Counts) Issued() uint64 { return c.Admitted + c.Delayed }

// RefusedShare is the share of the requests that were refused, 0 to 1.
func (c *Counts) RefusedShare() float64 { return share(c.Refused(), c.Requests) }

// WastedShare is the share of the issued tokens that were wasted, 0 to 1.
func (c *Counts) WastedShare() float64 { return share(c.Wasted, c.Issued()) }

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Reach is whom refusals reached. A user is one of one client.
type Reach struct {
	ClientCount int `json:"client_count"`
	ClientsHit  int `json:"clients_hit"`
	// UsersHit is exact unless UsersEstimated is set.
	UsersHit       uint64 `json:"users_hit"`
	UsersEstimated bool   `json:"users_estimated,omitempty"`
}

// Client is what became of the requests of one client.
type Client struct {
	ClientID string `json:"client_id"`
	Counts
	RefusedShare float64 `json:"refused_share"`
	WastedShare  float64 `json:"wasted_share"`
	// UsersHit are users of whom at least one request was refused. It is exact unless UsersEstimated is set.
	UsersHit       uint64 `json:"users_hit"`
	UsersEstimated bool   `json:"users_estimated,omitempty"`
	// WorstMinute is the minute with the most refused requests; nil: none was refused.
	WorstMinute *Minute `json:"worst_minute,omitempty"`
	// LongestBlocked is the longest time in which every request of one key, a user or the client itself, was
	// refused, until one would have passed.
	LongestBlocked Seconds `json:"longest_blocked_seconds"`
	// LongestWait is the longest Retry-After that an answer had.
	LongestWait Seconds `json:"longest_wait_seconds"`
	// Series is nil but for the clients of which most was refused.
	Series *Series `json:"series,omitempty"`
}

// Minute is one minute of a client.
type Minute struct {
	At       time.Time `json:"at"` // its beginning, UTC
	Requests uint64    `json:"requests"`
	Refused  uint64    `json:"refused"`
}

// Seconds is a time in seconds, as numbers in JSON.
type Seconds float64

// Duration converts it.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// Series is how many requests there were, and how many of them were refused, in each part of the time. The parts
// are of equal length, and as many as a chart can show: at most [MaxBuckets].
type Series struct {
	Start    time.Time `json:"start,omitzero"` // of the first part, UTC
	Step     Seconds   `json:"step_seconds"`
	Requests []uint64  `json:"requests"`
	Refused  []uint64  `json:"refused"`
	// Delayed and Reused are empty if there were none in all.
	Delayed []uint64 `json:"delayed,omitempty"`
	Reused  []uint64 `json:"reused,omitempty"`
}

// MaxBuckets is how many parts a [Series] has at most.
const MaxBuckets = 1440

// WhatIf is what would have become of the requests if the limits were those of every client that has none of its own.
type WhatIf struct {
	Limit string `json:"limit"` // as it was written, or the name of a preset
	Reach
	Counts
	RefusedShare float64 `json:"refused_share"`
	// Found is set if it is the limit of a [Target].
	Found bool `json:"found,omitempty"`
}

// Target is the lowest limit that leaves a share of the clients, or of the requests, untouched.
type Target struct {
	Share float64 `json:"share"` // that was asked for, 0 to 1
	Of    Of      `json:"of"`
	// Limit is what was found: a limit of so many Requests, the lowest.
	Limit    string          `json:"limit"`
	Requests int64           `json:"requests"`
	Found    ratelimit.Limit `json:"-"`
	// Count is how many clients or requests there were that the limit counts, and Untouched how many of them it
	// leaves untouched.
	Count     uint64 `json:"count"`
	Untouched uint64 `json:"untouched"`
	// Outstanding are the clients that it would refuse requests of, those that need most first, and
	// MoreOutstanding how many are left out.
	Outstanding     []Outstanding `json:"outstanding"`
	MoreOutstanding int           `json:"more_outstanding,omitempty"`
	// Curve is how many of Count are untouched at other limits, with rising Requests.
	Curve []Point `json:"curve"`
	// Days are the answers if one day of the log is left out; empty if it has only one. Min and Max are the
	// lowest and the highest of them.
	Days []Day `json:"days,omitempty"`
	Min  int64 `json:"min,omitempty"`
	Max  int64 `json:"max,omitempty"`
}

// Of is what a target counts.
type Of string

// What a target can count.
const (
	OfClients  Of = "clients"
	OfRequests Of = "requests"
)

// Outstanding is a client that a limit would refuse requests of.
type Outstanding struct {
	ClientID string `json:"client_id"`
	// Needs is the lowest limit that would refuse none.
	Needs    int64  `json:"needs"`
	Requests uint64 `json:"requests"`
}

// Point is how much a limit leaves untouched.
type Point struct {
	Requests  int64  `json:"requests"`
	Untouched uint64 `json:"untouched"`
}

// Day is the answer without one day.
type Day struct {
	Without  string `json:"without"` // the day, in UTC, such as 2026-11-23
	Requests int64  `json:"requests"`
}

// Lines are how many lines of a log were read. Every line is one of the three.
type Lines struct {
	Read    uint64 `json:"read"`
	Unread  uint64 `json:"unread"`
	Skipped uint64 `json:"skipped"` // that are no token request
	// Reordered is how many of those read stood before an earlier one, and were put in order.
	Reordered uint64  `json:"reordered"`
	Causes    []Cause `json:"causes,omitempty"`
	Files     []File  `json:"files,omitempty"`
}

// File is a log and its format.
type File struct {
	Name   string `json:"name"`
	Format string `json:"format"`
}

// Cause is why lines could not be read.
type Cause struct {
	Field string `json:"field"` // the log's name of it; line or file if it is about all of that
	Cause string `json:"cause"` // what is wrong with it
	Lines uint64 `json:"lines"`
	First string `json:"first"` // FILE:LINE of the first of them
}
