package cluster

import "time"

// Result has the figures of a cluster.
type Result struct {
	Instances int           `json:"instances"`
	Requests  int64         `json:"requests"`
	Admitted  int64         `json:"admitted"`
	Denied    int64         `json:"denied"`
	Lasted    time.Duration `json:"-"` // from the first request to the last
	Seconds   float64       `json:"seconds"`
	Keys      int           `json:"keys"` // keys with a request

	// AdmittedByOne is how many of the same requests one instance would have admitted.
	AdmittedByOne int64   `json:"admitted_by_one"`
	Over          Over    `json:"over"`
	Windows       Windows `json:"windows"`
	Cost          Cost    `json:"cost"` // of all instances, from the first request to the last

	PerInstance []Instance `json:"per_instance"`
	Points      []Point    `json:"points"`

	// Unaccounted is how many admitted requests are missing in the store without any instance
	// reporting them as unwritten, after all instances have stopped. It is 0 unless the simulation
	// or the syncer has a bug.
	Unaccounted int64 `json:"unaccounted"`
	// Expired is how many requests left their window before they were known to be written.
	Expired int64 `json:"expired"`
}

// Over shows how far the cluster's decisions were from the truth.
type Over struct {
	// Log is the most requests of one key admitted in any window, by an exact log, in parts of the
	// limit. Limits that are estimated from frames exceed 1 even with one instance.
	Log float64 `json:"log"`
	// Estimate is the highest estimate of one key, by one counter that has all admitted requests,
	// in parts of the limit. Any excess over 1 is caused by having several instances.
	Estimate float64 `json:"estimate"`
	// FalseDenials counts denied requests that such a counter would have admitted.
	FalseDenials int64 `json:"false_denials"`
}

// Windows are the full windows, aligned to the clock, in which a key was offered at least its
// limit.
type Windows struct {
	Count int64 `json:"count"`
	// Mean and Worst are the admitted requests per window in parts of the limit: the mean, and the
	// maximum. They leave out the first window of each key.
	Mean  float64 `json:"mean"`
	Worst float64 `json:"worst"`
	// First is the maximum in the first window of a key.
	First float64 `json:"first"`
}

// Cost counts the instances' calls to the store.
type Cost struct {
	Commands  int64 `json:"commands"` // including heartbeats and readings of the clock
	Writes    int64 `json:"writes"`   // counters to write
	Reads     int64 `json:"reads"`    // documents to read
	Conflicts int64 `json:"conflicts"`
	Unknown   int64 `json:"unknown"` // writes with an unknown outcome
	// Bytes estimates the bytes on the wire, in both directions, without the overhead of TLS and
	// TCP.
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

// Instance has the figures of one instance.
type Instance struct {
	Requests int64 `json:"requests"`
	Admitted int64 `json:"admitted"`
	Keys     int   `json:"keys"` // the most in memory at once
	Cost     Cost  `json:"cost"`
}

// Point has the figures of one part of the time.
type Point struct {
	At       time.Duration `json:"-"` // its end, since the first request
	Seconds  float64       `json:"at"`
	Requests int64         `json:"requests"`
	Admitted int64         `json:"admitted"`
	Over     Over          `json:"over"`
	Cost     Cost          `json:"cost"`
}

// PerAdmitted returns n divided by the admitted requests.
func (r *Result) PerAdmitted(n int64) float64 {
	if r.Admitted == 0 {
		return 0
	}
	return float64(n) / float64(r.Admitted)
}

// PerSecond returns n divided by the seconds of the run.
func (r *Result) PerSecond(n int64) float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(n) / r.Seconds
}
