package process_test

import (
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/overload/proctime"
	"oauth-server/lab/process"
)

// TestUsage: it is what the system says of this process, and what a child has used counts as soon as that has ended.
func TestUsage(t *testing.T) {
	before, err := process.UsageOf(os.Getpid(), process.AnyCore)
	check.OK(t, err)
	check.OK(t, exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").Run())
	after, err := process.UsageOf(os.Getpid(), process.AnyCore)
	check.OK(t, err)
	self, err := proctime.Self()
	check.OK(t, err)
	if after.Ran <= before.Ran || after.Ran > self || after.Ended <= before.Ended || after.Busy <= before.Busy || after.Memory == 0 {
		t.Errorf("before a child %+v, after it %+v, the system says %v", before, after, self)
	}
}

func TestBetween(t *testing.T) {
	at, ms := time.Now(), time.Millisecond
	samples := []process.Usage{
		{At: at},
		{At: at.Add(time.Second), Ran: time.Second, Children: 2 * time.Second, Busy: 10 * time.Second},
		{At: at.Add(2 * time.Second), Ran: 1200 * ms, Waited: 100 * ms, Children: 1500 * ms, Ended: time.Second, Busy: 11 * time.Second},
		{At: at.Add(3 * time.Second), Ran: 9 * time.Second},
	}
	got, want := process.Between(samples, at.Add(500*ms), at.Add(2500*ms)), process.Shares{Process: 0.2, Waited: 0.1, Children: 0.5, Others: 0.3}
	for what, d := range map[string]float64{
		"process": got.Process - want.Process, "waited": got.Waited - want.Waited, "children": got.Children - want.Children, "others": got.Others - want.Others,
	} {
		if math.Abs(d) > 1e-9 {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	check.Equal(t, "between two samples", process.Between(samples, at.Add(2100*ms), at.Add(2200*ms)), process.Shares{})
}
