package simulate

import (
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// Result is the result of a replay.
type Result struct {
	// From and To are the times of the first and the last request, in UTC; zero without requests.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Total counts all clients, including clients left out of Clients.
	Total Counts `json:"total"`
	Reach
	// Clients are sorted by how many of their requests were refused, in descending order.
	Clients []Client `json:"clients"`
	// MoreClients is how many clients Clients leaves out.
	MoreClients int `json:"more_clients,omitempty"`
	// Series counts all clients.
	Series Series `json:"series"`
	// WhatIf has the compared limits, in the given order. The limits found for
	// Targets follow.
	WhatIf  []WhatIf `json:"what_if,omitempty"`
	Targets []Target `json:"targets,omitempty"`
	// Notes are remarks on the figures for the reader, as sentences without a full stop.
	Notes []string `json:"notes,omitempty"`
	// Lines describes how the log was read.
	Lines traffic.Lines `json:"lines"`
	// Under names the policies that decided the requests, such as "the limits of limits.yaml".
	// Policies are their files.
	Under    string       `json:"under,omitempty"`
	Policies []PolicyFile `json:"policies,omitempty"`
	// Found is the file of the limits found for Targets.
	Found string `json:"found,omitempty"`
}

// PolicyFile is a file of limits, or the rate_limit of a configuration file.
type PolicyFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Counts are numbers of requests by outcome. Requests is the sum of Admitted, Denied, Delayed,
// Reused and Banned.
type Counts struct {
	Requests uint64 `json:"requests"`
	Admitted uint64 `json:"admitted"` // immediately, each with a new token
	Denied   uint64 `json:"denied"`   // by a limit
	Delayed  uint64 `json:"delayed"`  // admitted after a wait
	Reused   uint64 `json:"reused"`   // answered with the last token of the client
	Banned   uint64 `json:"banned"`   // denied, because its key was banned
	// Failed counts requests refused for another reason than a limit. Neither limits nor Requests
	// count them.
	Failed uint64 `json:"failed"`
	// Wasted counts tokens issued while an equal token had more than half of its life left.
	Wasted uint64 `json:"wasted"`
}

// Refused returns how many requests got no token because of a limit.
func (c *Counts) Refused() uint64 { return c.Denied + c.Banned }

// Issued returns how many new tokens were issued.
func (c *Counts) Issued() uint64 { return c.Admitted + c.Delayed }

// RefusedShare returns the share of refused requests, 0 to 1.
func (c *Counts) RefusedShare() float64 { return Share(c.Refused(), c.Requests) }

// WastedShare returns the share of wasted tokens among the issued ones, 0 to 1.
func (c *Counts) WastedShare() float64 { return Share(c.Wasted, c.Issued()) }

// Share returns part divided by whole; 0 if there is nothing.
func Share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Reach counts the clients and users with refused requests. A user belongs to one client.
type Reach struct {
	ClientCount int `json:"client_count"`
	ClientsHit  int `json:"clients_hit"`
	// UsersHit is exact unless UsersEstimated is set.
	UsersHit       uint64 `json:"users_hit"`
	UsersEstimated bool   `json:"users_estimated,omitempty"`
}

// Client has the outcomes of the requests of one client.
type Client struct {
	ClientID string `json:"client_id"`
	Counts
	RefusedShare float64 `json:"refused_share"`
	WastedShare  float64 `json:"wasted_share"`
	// UsersHit counts users with at least one refused request. It is exact unless UsersEstimated is
	// set.
	UsersHit       uint64 `json:"users_hit"`
	UsersEstimated bool   `json:"users_estimated,omitempty"`
	// WorstMinute is the minute with the most refused requests; nil without refusals.
	WorstMinute *Minute `json:"worst_minute,omitempty"`
	// LongestBlocked is the longest time in which every request of one key, a user or the client
	// itself, was refused. It ends when a request would have passed.
	LongestBlocked Seconds `json:"longest_blocked_seconds"`
	// LongestWait is the longest Retry-After of an answer.
	LongestWait Seconds `json:"longest_wait_seconds"`
	// Series is set only for the clients with the most refused requests.
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

// Duration converts s to a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// Series has the number of requests, and of refused requests, in each part of the time. The parts
// are of equal length, and as many as a chart can show: at most [MaxBuckets].
type Series struct {
	Start    time.Time `json:"start,omitzero"` // of the first part, UTC
	Step     Seconds   `json:"step_seconds"`
	Requests []uint64  `json:"requests"`
	Refused  []uint64  `json:"refused"`
	// Delayed and Reused are empty if their total is 0.
	Delayed []uint64 `json:"delayed,omitempty"`
	Reused  []uint64 `json:"reused,omitempty"`
}

// MaxBuckets is the maximum number of parts of a [Series].
const MaxBuckets = 1440

// WhatIf has the outcomes if the limits applied to every client without limits of its own.
type WhatIf struct {
	Limit string `json:"limit"` // as it was written, or the name of a preset
	Reach
	Counts
	RefusedShare float64 `json:"refused_share"`
	// Found is set for the limit of a [Target].
	Found bool `json:"found,omitempty"`
}

// Target is the lowest limit that leaves a share of the clients, or of the requests, untouched.
type Target struct {
	Share float64 `json:"share"` // the requested share, 0 to 1
	Of    Of      `json:"of"`
	// Limit is the lowest such limit. It has the number Requests.
	Limit    string          `json:"limit"`
	Requests int64           `json:"requests"`
	Found    ratelimit.Limit `json:"-"`
	// Count is the number of clients or requests that the limit counts. Untouched is how many of
	// them it leaves untouched.
	Count     uint64 `json:"count"`
	Untouched uint64 `json:"untouched"`
	// Outstanding are the clients with requests that the limit would refuse, the ones with the
	// highest needs first. MoreOutstanding is how many are left out.
	Outstanding     []Outstanding `json:"outstanding"`
	MoreOutstanding int           `json:"more_outstanding,omitempty"`
	// Curve has the number of untouched ones among Count at other limits, by ascending Requests.
	Curve []Point `json:"curve"`
	// Days are the answers without one day of the log each. They are empty if the log has only one
	// day. Min and Max are the lowest and the highest answer.
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

// Outstanding is a client with requests that a limit would refuse.
type Outstanding struct {
	ClientID string `json:"client_id"`
	// Needs is the lowest limit that would refuse no request of the client.
	Needs    int64  `json:"needs"`
	Requests uint64 `json:"requests"`
}

// Point is the number that one limit leaves untouched.
type Point struct {
	Requests  int64  `json:"requests"`
	Untouched uint64 `json:"untouched"`
}

// Day is the answer if one day is left out.
type Day struct {
	Without  string `json:"without"` // the day, in UTC, such as 2026-11-23
	Requests int64  `json:"requests"`
}
