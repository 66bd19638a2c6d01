package heapfloor

import (
	"io/fs"
	"log/slog"
	"math"
	"runtime/debug"
)

const (
	// usualFloor is the floor if there is enough memory, in bytes. It is at most 1/usualShare of the
	// memory.
	usualFloor, usualShare = 64 << 20, 8
	// hashingFloor and hashingShare are the same for a process that hashes passwords.
	hashingFloor, hashingShare = 192 << 20, 4
	// goMinimum is the heap size below which Go never collects at GOGC=100.
	goMinimum = 4 << 20
)

// Choice is a floor, and the reason for it.
type Choice struct {
	Floor  int64  // bytes; 0: the collector is not changed
	Memory int64  // bytes that this process may use; 0: unknown
	From   string // source of Memory: cgroup, GOMEMLIMIT, machine; or why there is no floor: GOGC
}

// Choose returns a floor of 64 MiB, or an eighth of the memory that this process may use if that is
// less. If this process hashes passwords, the floor is 192 MiB, or a quarter of the memory. The
// memory is limited by the machine, its control groups, or GOMEMLIMIT. lookup is [os.LookupEnv]; if
// it finds GOGC, the floor is 0. root is the file system of the machine.
func Choose(lookup func(string) (string, bool), root fs.FS, hashes bool) Choice {
	if v, set := lookup("GOGC"); set && v != "" {
		return Choice{From: "GOGC"}
	}
	floor, share := int64(usualFloor), int64(usualShare)
	if hashes {
		floor, share = hashingFloor, hashingShare
	}
	memory, from := Memory(root)
	c := Choice{Floor: floor, Memory: memory, From: from}
	if memory > 0 {
		c.Floor = min(floor, memory/share)
	}
	if c.Floor <= goMinimum { // not a floor: Go has this minimum anyway
		c.Floor = 0
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
	return slog.GroupValue(slog.Int64("floor", c.Floor), slog.Int64("memory", c.Memory), slog.String("from", c.From))
}
