package heapfloor

import (
	"io/fs"
	"log/slog"
	"math"
	"runtime/debug"
)

const (
	// Default is the floor if there is enough memory, in bytes.
	Default = 64 << 20
	// DefaultRaised is the raised floor if there is enough memory, in bytes.
	DefaultRaised = 192 << 20
	// share is the part of the memory that a floor may use at most: an eighth. A raised floor may
	// use a quarter.
	share, raisedShare = 8, 4
	// goMinimum is the heap size below which Go never collects at GOGC=100.
	goMinimum = 4 << 20
)

// Choice is a floor, and the reason for it.
type Choice struct {
	Floor  int64  // bytes; 0: the collector is not changed
	Raised int64  // the floor during work that makes much garbage
	Memory int64  // bytes that this process may use; 0: unknown
	From   string // source of Memory: cgroup, GOMEMLIMIT, machine; or why there is no floor: GOGC
}

// Choose returns [Default] and [DefaultRaised], or an eighth and a quarter of the memory that this
// process may use if that is less. This memory is limited by the machine, its control groups, or
// GOMEMLIMIT. lookup is [os.LookupEnv]; if it finds GOGC, the floor is 0. root is the file system
// of the machine.
func Choose(lookup func(string) (string, bool), root fs.FS) Choice {
	if v, set := lookup("GOGC"); set && v != "" {
		return Choice{From: "GOGC"}
	}
	memory, from := Memory(root)
	c := Choice{Floor: Default, Raised: DefaultRaised, Memory: memory, From: from}
	if memory > 0 {
		c.Floor, c.Raised = min(c.Floor, memory/share), min(c.Raised, memory/raisedShare)
	}
	if c.Floor <= goMinimum { // not a floor: Go has this minimum anyway
		c.Floor, c.Raised = 0, 0
	}
	return c
}

// Memory returns how many bytes this process may use, and the source of that limit: cgroup,
// GOMEMLIMIT or machine, whichever is least. It returns 0 if the limit is unknown. Call it before
// [Choice.Keep], which changes the memory limit. root is the file system of the machine.
func Memory(root fs.FS) (bytes int64, from string) {
	bytes, from = memoryOf(root)
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 && (bytes == 0 || limit < bytes) {
		return limit, "GOMEMLIMIT"
	}
	return bytes, from
}

// LogValue implements [slog.LogValuer].
func (c Choice) LogValue() slog.Value {
	return slog.GroupValue(slog.Int64("floor", c.Floor), slog.Int64("raised", c.Raised), slog.Int64("memory", c.Memory), slog.String("from", c.From))
}
