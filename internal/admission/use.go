package admission

import (
	"runtime"
	"time"

	"oauth-server/internal/proctime"
)

// processorUse measures whether this process uses the processors.
type processorUse struct {
	used time.Duration // at the last measurement
	mean float64       // processors that were used lately
}

// leastUse is the share of its processors that a process uses whose requests wait for itself. With less, it is other
// programs that they wait for, and to refuse requests would not help. Child processes that hash passwords are others.
const leastUse = 0.5

// busy reports whether the process has used so much lately, dt after the last call. Where that cannot be measured it has.
func (u *processorUse) busy(dt time.Duration) bool {
	used, err := proctime.Self()
	return err != nil || u.take(used, dt) >= leastUse*float64(min(runtime.GOMAXPROCS(0), runtime.NumCPU())) // serve may have one place more
}

// take takes the processor time that was used until now, dt after the last call, and returns the mean.
func (u *processorUse) take(used, dt time.Duration) float64 {
	processors := float64(used-u.used) / float64(dt)
	u.used = used
	u.mean += (processors - u.mean) * min(1, dt.Seconds()/rateMemory.Seconds())
	return u.mean
}
