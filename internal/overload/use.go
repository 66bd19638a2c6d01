package overload

import (
	"runtime"
	"time"

	"oauth-server/internal/overload/proctime"
)

// processorUse measures whether this process uses the processors.
type processorUse struct {
	quota float64       // CPU quota in processors; 0: no quota
	used  time.Duration // at the last measurement
	mean  float64       // recently used processors
}

// leastUse is the used share of its processors, or of its quota, above which a process causes its
// own waits. Below it, requests wait for other programs, and refusing requests would not help,
// unless there are more requests than the process can answer in the remaining time (see
// [Shedder.losing]). Child processes that hash passwords count as other programs.
const leastUse = 0.5

// busy reports whether the process has recently used at least leastUse, dt after the last call. It
// reports true if the usage cannot be measured.
func (u *processorUse) busy(dt time.Duration) bool {
	used, err := proctime.Self()
	return err != nil || u.take(used, dt) >= leastUse*u.processors(runtime.GOMAXPROCS(0), runtime.NumCPU())
}

// processors returns how many processors the process can use: the minimum of the places to run
// (serve may have added one), the processors of the machine, and the quota.
func (u *processorUse) processors(places, there int) float64 {
	n := float64(min(places, there))
	if u.quota > 0 {
		n = min(n, u.quota)
	}
	return n
}

// quotaPeriod is the time after which Linux grants a quota again, unless someone changes it.
const quotaPeriod = 100 * time.Millisecond

// stopped returns how long the quota stops the process in each period if it uses all processors
// until then.
func (u *processorUse) stopped(places, there int) time.Duration {
	return time.Duration((1 - u.processors(places, there)/float64(min(places, there))) * float64(quotaPeriod))
}

// take records the processor time used until now, dt after the last call, and returns the mean.
func (u *processorUse) take(used, dt time.Duration) float64 {
	processors := float64(used-u.used) / float64(dt)
	u.used = used
	u.mean += (processors - u.mean) * min(1, dt.Seconds()/rateMemory.Seconds())
	return u.mean
}
