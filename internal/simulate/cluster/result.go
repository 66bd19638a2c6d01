package cluster

import "time"

// Result is what a cluster did.
type Result struct {
	Instances int           `json:"instances"`
	Requests  int64         `json:"requests"`
	Admitted  int64         `json:"admitted"`
	Denied    int64         `json:"denied"`
	Lasted    time.Duration `json:"-"` // from the first request to the last
	Seconds   float64       `json:"seconds"`
	Keys      int           `json:"keys"` // that had a request

	// AdmittedByOne is what one instance would have admitted of the same requests.
	AdmittedByOne int64   `json:"admitted_by_one"`
	Over          Over    `json:"over"`
	Windows       Windows `json:"windows"`
	Cost          Cost    `json:"cost"` // of all instances, from the first request to the last

	PerInstance []Instance `json:"per_instance"`
	Points      []Point    `json:"points"`

	// Unaccounted is how many admitted requests neither the store has nor any instance knows to be missing
	// there, when all instances have stopped. It is 0 unless the simulation or the syncer is wrong.
	Unaccounted int64 `json:"unaccounted"`
	// Expired is how many left their window before they were known to be written.
	Expired int64 `json:"expired"`
}

// Over is how far the cluster was from the truth.
type Over struct {
	// Log is the most requests of one key that were admitted in any window, by an exact log, in parts of the
	// limit. Limits that are estimated from frames are above 1 even with one instance.
	Log float64 `json:"log"`
	// Estimate is the highest estimate of one key by one counter that has all admitted requests, in parts of
	// the limit: what is above 1 is so because there are several instances.
	Estimate float64 `json:"estimate"`
	// FalseDenials counts denied requests that such a counter would have admitted.
	FalseDenials int64 `json:"false_denials"`
}

// Windows are the full windows, by the clock, in which a key was offered at least its limit.
type Windows struct {
	Count int64 `json:"count"`
	// What was admitted in them, in parts of the limit: in the mean, and at most. Those that are the first of
	// their key are left out.
	Mean  float64 `json:"mean"`
	Worst float64 `json:"worst"`
	// First is the most in the first window of a key.
	First float64 `json:"first"`
}

// Cost is what the instances asked of the store.
type Cost struct {
	Commands  int64 `json:"commands"` // heartbeats and readings of the clock included
	Writes    int64 `json:"writes"`   // counters that were to be written
	Reads     int64 `json:"reads"`    // documents that were to be read
	Conflicts int64 `json:"conflicts"`
	Unknown   int64 `json:"unknown"` // writes whose outcome was not known
	// Bytes estimates what went over the wire, both ways, without what TLS and TCP add.
	Bytes int64 `json:"bytes"`
}

func (c *Cost) add(o *Cost, sign int64) {
	c.Commands += sign * o.Commands
	c.Writes += sign * o.Writes
	c.Reads += sign * o.Reads
	c.Conflicts += sign * o.Conflicts
	c.Unknown += sign * o.Unknown
	c.Bytes += sign * o.Bytes
}

// Instance is what one instance did.
type Instance struct {
	Requests int64 `json:"requests"`
	Admitted int64 `json:"admitted"`
	Keys     int   `json:"keys"` // in memory, at most
	Cost     Cost  `json:"cost"`
}

// Point is a part of the time.
type Point struct {
	At       time.Duration `json:"-"` // its end, since the first request
	Seconds  float64       `json:"at"`
	Requests int64         `json:"requests"`
	Admitted int64         `json:"admitted"`
	Over     Over          `json:"over"`
	Cost     Cost          `json:"cost"`
}

// PerAdmitted returns n for each admitted request.
func (r *Result) PerAdmitted(n int64) float64 {
	if r.Admitted == 0 {
		return 0
	}
	return float64(n) / float64(r.Admitted)
}

// PerSecond returns n for each second.
func (r *Result) PerSecond(n int64) float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(n) / r.Seconds
}
