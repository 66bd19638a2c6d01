package hashing

import (
	"io/fs"
	"strconv"
	"strings"

	"oauth-server/internal/overload/heapfloor"
)

// Quota returns the smallest number of processors that the control groups of this process limit its
// time to. It returns 0 if that is not less than processors. A quota that is used up stops all
// processes of the group, whatever their priority. root is the file system of the machine.
func Quota(root fs.FS, processors int) (least float64) {
	for _, file := range heapfloor.ControlGroupFiles(root, "cpu", []string{"cpu.max"}, []string{"cpu.cfs_quota_us"}) {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text))
		if period, is := strings.CutSuffix(file, "quota_us"); is { // version 1
			text, err := fs.ReadFile(root, period+"period_us")
			if err != nil {
				continue
			}
			fields = append(fields, strings.Fields(string(text))...)
		}
		if n := share(fields); n > 0 && n < float64(processors) && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// share returns the number of processors for a quota and its period: 50000 and 100000 are half a
// processor. It returns 0 without a quota, which is written "max" or -1.
func share(fields []string) float64 {
	if len(fields) != 2 {
		return 0
	}
	quota, err1 := strconv.ParseFloat(fields[0], 64)
	period, err2 := strconv.ParseFloat(fields[1], 64)
	if err1 != nil || err2 != nil || quota <= 0 || period <= 0 {
		return 0
	}
	return quota / period
}
