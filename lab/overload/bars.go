package overload

import (
	"fmt"
	"slices"
)

// The bars that a server with overload control must meet. A server without it is only shown beside
// them.
const (
	tokensBar   = 0.99 // share of refreshes and codes that succeed …
	ownWork     = 0.8  // … as long as their work alone takes less of the processor
	slowdownBar = 3    // times the p99 at half load
	goodputBar  = 0.9  // times the capacity
	recoveryBar = 2    // seconds
	memoryBar   = 1.25 // times the memory before
	noticeBar   = 0.01 // share of the requests of others
)

// bar is a bar and its measured value.
type bar struct {
	what, want, got string
	met             bool
}

func (r *Report) barTable() string {
	var rows [][]string
	for _, control := range r.controls() {
		for _, b := range r.bars(control) {
			verdict := "missed"
			if b.met {
				verdict = "met"
			}
			rows = append(rows, []string{control, b.what, b.want, b.got, verdict})
		}
	}
	return table([]string{"control", "what", "bar", "measured", ""}, rows)
}

// bars compares all measurements under a control with the bars.
func (r *Report) bars(control string) (all []bar) {
	var loads []float64
	for _, row := range r.Rows {
		if row.Series == MixSeries && row.Control == control {
			loads = append(loads, row.Load)
		}
	}
	if len(loads) == 0 {
		return nil
	}
	half, most := r.find(MixSeries, control, slices.Min(loads), false), r.find(MixSeries, control, slices.Max(loads), false)
	at := fmt.Sprintf(", %s × capacity", number(most.Load))
	if work := r.ownWork(most); work < ownWork {
		all = append(all, bar{
			"refresh and code succeed" + at, fmt.Sprintf("≥ %s %% (their work: %s %% of the processor)", percent(tokensBar), percent(work)),
			percent(most.Tokens.Success()) + " %", most.Tokens.Success() >= tokensBar,
		})
	}
	slowdown := most.Tokens.P99 / half.Tokens.P99
	all = append(all,
		bar{"their p99" + at, fmt.Sprintf("≤ %d × that at %s × capacity", slowdownBar, number(half.Load)), number(slowdown) + " ×", slowdown <= slowdownBar},
		bar{"goodput" + at, fmt.Sprintf("≥ %v × capacity", goodputBar), number(most.Goodput/r.Capacity) + " ×", most.Goodput >= goodputBar*r.Capacity},
		bar{"useful work" + at, "shown", percent(most.Useful) + " % of the processor", true},
	)
	for _, found := range r.Recoveries {
		if found.Control == control {
			all = append(all, bar{
				"recovery after " + number(found.Load) + " × capacity", fmt.Sprintf("≤ %d s", recoveryBar), number(found.Seconds) + " s",
				found.OK && found.Seconds <= recoveryBar,
			})
		}
	}
	memory := float64(most.MemoryPeak) / float64(half.MemoryPeak)
	all = append(all, bar{
		"memory at the peak" + at, fmt.Sprintf("≤ %v × that at %s × capacity", memoryBar, number(half.Load)), number(memory) + " ×", memory <= memoryBar,
	})
	return append(all, r.noticed(control)...)
}

// ownWork is the processor time that all refreshes and codes of a row would take, as a share of the time.
func (r *Report) ownWork(row *Row) (work float64) {
	for _, c := range r.Costs {
		if c.Class == Refresh.String() || c.Class == Code.String() {
			f := row.Classes[c.Class]
			work += float64(f.Due+f.Late) / row.Seconds * c.Server / 1e6
		}
	}
	return work
}

// noticed measures how a client over its limit affects the other clients.
func (r *Report) noticed(control string) (all []bar) {
	for i := range r.Rows {
		with := &r.Rows[i]
		if with.Series != GreedySeries || with.Control != control || !with.Greedy {
			continue
		}
		without := r.find(GreedySeries, control, with.Load, false)
		if without == nil {
			continue
		}
		lost := without.Tokens.Success() - with.Tokens.Success()
		all = append(all, bar{
			fmt.Sprintf("refreshes and codes lost to a client over its limit, %s × capacity", number(with.Load)),
			"≤ " + percent(noticeBar) + " %", percent(max(lost, 0)) + " %", lost <= noticeBar,
		})
	}
	return all
}
