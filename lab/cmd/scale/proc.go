package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine describes the machine, the date and the load average before the measurement.
func machine(at time.Time, load string) string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	memory, _ := os.ReadFile("/proc/meminfo")
	return fmt.Sprintf("%s: %d × %s, %d GiB of memory, load average %s before",
		at.UTC().Format(time.DateOnly), runtime.NumCPU(), field(string(info), "model name"), (kib(field(string(memory), "MemTotal"))+(1<<19))>>20, load)
}

// loadAverage returns the load average of the last minute.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// field returns the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kib reads "123 kB".
func kib(value string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return n
}

// resident is the memory of a process, in KiB.
type resident struct{ peak, now, anon, file int64 }

func readResident(pid int) (resident, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return residentOf(string(status)), err
}

func residentOf(status string) resident {
	return resident{
		kib(field(status, "VmHWM")), kib(field(status, "VmRSS")), kib(field(status, "RssAnon")), kib(field(status, "RssFile")),
	}
}

// The fields of /proc/PID/io.
const (
	handedOver = "wchar"       // bytes that were handed to write calls, of files and of sockets
	toDisk     = "write_bytes" // bytes of the pages that were made dirty: of all pages of a folio, if one is written to
)

// written returns the bytes that a process has written, as that field counts them.
func written(pid int, as string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(field(string(text), as), 10, 64)
	return float64(n), err
}

// commits returns how many transactions have been committed to an embedded file, which another process may
// have open: the number is in the newer of the two meta pages of bbolt.
func commits(path string) (uint64, error) {
	f, err := os.Open(path) //nolint:gosec // G304: a file that this program made
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	var newest uint64
	for i := range int64(2) {
		page := make([]byte, 80)
		if _, err := f.ReadAt(page, i*int64(os.Getpagesize())); err != nil {
			return 0, err
		}
		txid, err := txidOf(page)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		newest = max(newest, txid)
	}
	return newest, nil
}

func txidOf(page []byte) (uint64, error) {
	const header, magic = 16, 0xED0CDAED
	meta := page[header:]
	if binary.LittleEndian.Uint32(meta) != magic {
		return 0, errors.New("no meta page of bbolt")
	}
	return binary.LittleEndian.Uint64(meta[48:]), nil
}
