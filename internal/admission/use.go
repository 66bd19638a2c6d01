package admission

import (
	"runtime"
	"time"

	"oauth-server/internal/proctime"
)

// processorUse measures whether this process uses the processors.
type processorUse struct {
	quota float64       // of processor time, in processors; 0: there is none
	used  time.Duration // at the last measurement
	mean  float64       // processors that were used lately
}

// leastUse is the share of its processors, or of its quota, that a process uses whose requests wait for itself. With less, it is other
// programs that they wait for, and to refuse requests would not help, unless there are more than it can answer with what
// these leave it (see [Gate.losing]). Child processes that hash passwords are others.
const leastUse = 0.5

// busy reports whether the process has used so much lately, dt after the last call. Where that cannot be measured it has.
func (u *processorUse) busy(dt time.Duration) bool {
	used, err := proctime.Self()
	return err != nil || u.take(used, dt) >= leastUse*u.processors(runtime.GOMAXPROCS(0), runtime.NumCPU())
}

// processors is how many the process can use: places to run, of which serve may have made one too many, processors, and its
// quota, which stands for no more of them than it has time for.
func (u *processorUse) processors(places, there int) float64 {
	n := float64(min(places, there))
	if u.quota > 0 {
		n = min(n, u.quota)
	}
	return n
}

// take takes the processor time that was used until now, dt after the last call, and returns the mean.
func (u *processorUse) take(used, dt time.Duration) float64 {
	processors := float64(used-u.used) / float64(dt)
	u.used = used
	u.mean += (processors - u.mean) * min(1, dt.Seconds()/rateMemory.Seconds())
	return u.mean
}
