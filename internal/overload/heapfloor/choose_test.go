package heapfloor

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"oauth-server/internal/check"
)

// files is a file system with these files.
func files(pairs ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fs[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fs
}

const (
	mib = 1 << 20
	// meminfo is the memory of a machine with 8 GiB.
	meminfo = "MemTotal:        8388608 kB\nMemFree:          123456 kB\n"
	slice   = "sys/fs/cgroup/system.slice/"
	legacy  = "sys/fs/cgroup/memory/docker/"
)

func TestMemoryOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want int64
		from string
	}{
		{"nothing is known", files(), 0, ""},
		{"a machine", files("proc/meminfo", meminfo), 8192 * mib, "machine"},
		{"an odd machine", files("proc/meminfo", "MemTotal: lots kB\n"), 0, ""},
		{"a container", files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "536870912\n"), 512 * mib, "cgroup"},
		{"a container without a limit", files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "max\n"), 8192 * mib, "machine"},
		{"more than the machine has", files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "17179869184\n"), 8192 * mib, "machine"},
		{
			"throttled before the limit",
			files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "536870912\n", "sys/fs/cgroup/memory.high", "268435456\n"),
			256 * mib, "cgroup",
		},
		{"a service", files("proc/self/cgroup", "0::/system.slice/oauth.service\n", slice+"oauth.service/memory.max", "134217728\n"), 128 * mib, "cgroup"},
		{
			"the group above it",
			files("proc/self/cgroup", "0::/system.slice/oauth.service\n", slice+"oauth.service/memory.max", "max\n", slice+"memory.max", "67108864\n"),
			64 * mib, "cgroup",
		},
		{"a group that cannot be seen", files("proc/self/cgroup", "0::/../../kubepods/x\n", "sys/fs/cgroup/memory.max", "67108864\n"), 64 * mib, "cgroup"},
		{
			"version 1",
			files("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/docker/x\n0::/\n", legacy+"x/memory.limit_in_bytes", "268435456\n"),
			256 * mib, "cgroup",
		},
		{
			"version 1 in a container",
			files("proc/self/cgroup", "4:hugetlb,memory:/docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n"),
			256 * mib, "cgroup",
		},
		{
			"version 1 without a limit",
			files("proc/meminfo", meminfo, "proc/self/cgroup", "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
			8192 * mib, "machine",
		},
		{"nonsense", files("proc/meminfo", meminfo, "proc/self/cgroup", "memory\n:\n", "sys/fs/cgroup/memory.max", "-5\n"), 8192 * mib, "machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, from := memoryOf(tt.root); got != tt.want || from != tt.from {
				t.Errorf("got %d from %q, want %d from %q", got, from, tt.want, tt.from)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	container := func(limit string) fstest.MapFS {
		return files("proc/meminfo", meminfo, "proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", limit)
	}
	for _, tt := range []struct {
		name  string
		env   map[string]string
		limit int64 // GOMEMLIMIT; 0: not set
		root  fstest.MapFS
		want  Choice
		hash  int64 // the floor if this process hashes passwords
	}{
		{"a large machine", nil, 0, files("proc/meminfo", meminfo), Choice{64 * mib, 8192 * mib, "machine"}, 192 * mib},
		{"not known", nil, 0, files(), Choice{64 * mib, 0, ""}, 192 * mib},
		{"an eighth of a container", nil, 0, container("268435456"), Choice{32 * mib, 256 * mib, "cgroup"}, 64 * mib},
		{"a container too small", nil, 0, container("33554432"), Choice{0, 32 * mib, "cgroup"}, 8 * mib},
		{"a memory limit", nil, 80 * mib, container("268435456"), Choice{10 * mib, 80 * mib, "GOMEMLIMIT"}, 20 * mib},
		{"a memory limit above the container's", nil, 512 * mib, container("268435456"), Choice{32 * mib, 256 * mib, "cgroup"}, 64 * mib},
		{"a memory limit, and nothing else is known", nil, 80 * mib, files(), Choice{10 * mib, 80 * mib, "GOMEMLIMIT"}, 20 * mib},
		{"GOGC", map[string]string{"GOGC": "100"}, 0, files("proc/meminfo", meminfo), Choice{From: "GOGC"}, 0},
		{"GOGC=off", map[string]string{"GOGC": "off"}, 80 * mib, files("proc/meminfo", meminfo), Choice{From: "GOGC"}, 0},
		{"an empty GOGC", map[string]string{"GOGC": ""}, 0, files("proc/meminfo", meminfo), Choice{64 * mib, 8192 * mib, "machine"}, 192 * mib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.limit > 0 {
				old := debug.SetMemoryLimit(tt.limit)
				defer debug.SetMemoryLimit(old)
			} else if debug.SetMemoryLimit(-1) != math.MaxInt64 {
				t.Skip("the tests run under a GOMEMLIMIT")
			}
			lookup := func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }
			check.Equal(t, "choice", Choose(lookup, tt.root, false), tt.want)
			check.Equal(t, "floor of a process that hashes passwords", Choose(lookup, tt.root, true).Floor, tt.hash)
		})
	}
}
