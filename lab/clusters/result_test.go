package clusters

import "time"

// result has the figures of a cluster.
type result struct {
	instances          int
	requests, admitted int64
	lasted             time.Duration // from the first request to the last

	admittedByOne int64   // how many of the same requests one instance would have admitted
	windows       windows // full windows
	// log is the most requests of one key admitted in any window, by an exact log, in parts of the limit. Limits
	// that are estimated from frames exceed 1 even with one instance.
	log          float64
	falseDenials int64 // denied requests that one counter with all admitted requests would have admitted
	cost         cost  // of all instances, from the first request to the last
	keysOfEach   int   // the most in memory of an instance
	points       []point

	// unaccounted is how many admitted requests are missing in the store without any instance reporting them as
	// unwritten, after all instances have stopped. It is 0 unless the simulation or the syncer has a bug.
	unaccounted int64
	expired     int64 // requests that left their window before they were known to be written
}

// windows are the full windows, aligned to the clock, in which a key was offered at least its limit.
type windows struct {
	count int64
	// mean and worst are the admitted requests per window in parts of the limit: the mean, and the maximum. They
	// leave out the first window of each key.
	mean, worst float64
	first       float64 // the maximum in the first window of a key
}

// cost counts the instances' calls to the store.
type cost struct {
	commands           int64 // including heartbeats and readings of the clock
	writes, reads      int64 // counters to write, and documents to read
	conflicts, unknown int64 // writes that were not applied, or have an unknown outcome
	bytes              int64 // estimated, on the wire in both directions, without the overhead of TLS and TCP
}

func (c *cost) add(o *cost, sign int64) {
	c.commands += sign * o.commands
	c.writes += sign * o.writes
	c.reads += sign * o.reads
	c.conflicts += sign * o.conflicts
	c.unknown += sign * o.unknown
	c.bytes += sign * o.bytes
}

// point has the figures of one part of the time.
type point struct {
	at       time.Duration // its end, since the first request
	estimate float64       // the highest of one key, by one counter with all admitted requests, in parts of the limit
	commands int64
}

// perAdmitted returns n divided by the admitted requests.
func (r *result) perAdmitted(n int64) float64 { return float64(n) / float64(max(r.admitted, 1)) }

// perSecond returns n divided by the seconds of the run.
func (r *result) perSecond(n int64) float64 { return float64(n) / r.lasted.Seconds() }
