package heapfloor

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// unlimited is the smallest limit of a control group that means no limit. Version 1 writes the
// largest multiple of a page for no limit.
const unlimited = 1 << 60

// memoryOf returns how many bytes of memory this process may use on Linux, and the source of that
// limit. It returns 0 if the limit is unknown.
func memoryOf(root fs.FS) (least int64, from string) {
	consider := func(n int64, source string) {
		if n > 0 && n < unlimited && (least == 0 || n < least) {
			least, from = n, source
		}
	}
	consider(machineMemory(root), "machine")
	for _, file := range ControlGroupFiles(root, "memory", []string{"memory.max", "memory.high"}, []string{"memory.limit_in_bytes"}) {
		if text, err := fs.ReadFile(root, file); err == nil {
			n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			if err == nil { // "max" otherwise
				consider(n, "cgroup")
			}
		}
	}
	return least, from
}

// machineMemory returns MemTotal of /proc/meminfo in bytes; 0 if it is missing.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// ControlGroupFiles returns the paths of files that may limit this process. Their names are v2 or
// v1, by the version of the control groups. They are the files of the process's control group for a
// resource, such as memory, and of all groups above it. Inside a container its group usually is the
// root of the mount. root is the file system of the machine.
func ControlGroupFiles(root fs.FS, resource string, v2, v1 []string) (files []string) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "": // version 2
			files = append(files, upwards("sys/fs/cgroup", parts[2], v2...)...)
		case strings.Contains(","+parts[1]+",", ","+resource+","): // version 1
			files = append(files, upwards("sys/fs/cgroup/"+resource, parts[2], v1...)...)
		}
	}
	return files
}

// upwards lists the files in the group's directory and in all directories above, up to the mount
// point. A group outside the mount ("/..") counts as the mount point.
func upwards(mount, group string, names ...string) (files []string) {
	dir := path.Join(mount, path.Join("/", group))
	for {
		for _, name := range names {
			files = append(files, path.Join(dir, name))
		}
		if len(dir) <= len(mount) {
			return files
		}
		dir = path.Dir(dir)
	}
}
