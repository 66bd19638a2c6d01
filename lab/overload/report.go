package overload

// Report is what a run found.
type Report struct {
	Machine string
	Date    string
	Took    string
	Costs   []Cost
	// Capacity is how many requests the server answers in a second while there is always a next one: of the mix, and of
	// tokens without sign-ins.
	Capacity, TokenCapacity float64
	Rows                    []Row
	Recoveries              []Recovery
}

// Cost is the processor time of a request, in microseconds.
type Cost struct {
	Class   string
	Server  float64 // of the server
	Hashing float64 // of the processes that hash passwords
	N       int     // requests that were measured
}

// The series of loads.
const (
	MixSeries    = "mix"
	TokenSeries  = "tokens"
	GreedySeries = "one over its limit" // beside the mix
)

// Row holds the figures of one load.
type Row struct {
	Series  string
	Control string  // the mode; "none" if the server has no control or control is off
	Load    float64 // times the capacity
	Greedy  bool    // whether one client sends 50 times its limit
	Offered float64 // requests a second, without those of that client
	Seconds float64
	Classes map[string]Figures
	Tokens  Figures // refreshes and codes together, which have one bar
	All     Figures
	// Goodput is the requests a second that were answered as asked for, before their callers hung up.
	Goodput float64
	// Useful is the processor time of those, by their costs, as a share of the time.
	Useful float64
	// ServerShare and HashingShare are the shares of the processor.
	ServerShare, HashingShare float64
	// Waited is the total time for which threads of the server waited for the processor, as a share of
	// the time. Others is the share of the processor that other programs used. Stolen is the share that
	// the hypervisor took. Both should be near 0.
	Waited, Others, Stolen float64
	InServer, InChildren   float64 // passwords hashed
	// Memory is resident, in bytes: before, most, and at the end.
	MemoryBefore, MemoryPeak, MemoryAfter int64
	Stalled                               float64 // share of the time during which the generator did not run
	Connections                           int     // opened
}

// Recovery is how soon after an overload the server was as quick as before.
type Recovery struct {
	Control string
	Load    float64 // of the overload
	Bound   float64 // milliseconds: twice the p99 at half load
	Seconds float64
	OK      bool // false: not before the end of the measurement
}
