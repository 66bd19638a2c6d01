package main

import (
	"fmt"
	"slices"

	"oauth-server/lab/page"
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

func (r *report) barTable() string {
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
	return page.Markdown([]string{"control", "goal", "bar", "measured", ""}, rows)
}

// bars compares all measurements under a control with the bars.
func (r *report) bars(control string) (all []bar) {
	var loads []float64
	for _, row := range r.rows {
		if row.series == mixSeries && row.control == control {
			loads = append(loads, row.load)
		}
	}
	if len(loads) == 0 {
		return nil
	}
	half, most := r.find(mixSeries, control, slices.Min(loads), false), r.find(mixSeries, control, slices.Max(loads), false)
	at := fmt.Sprintf(", %s × capacity", page.Number(most.load))
	if work := r.ownWork(most); work < ownWork {
		all = append(all, bar{
			"refreshes and codes succeed" + at, fmt.Sprintf("≥ %s %% (their work: %s %% of the processor)", percent(tokensBar), percent(work)),
			percent(most.tokens.success()) + " %", most.tokens.success() >= tokensBar,
		})
	}
	slowdown := most.tokens.p(99) / half.tokens.p(99)
	all = append(all,
		bar{"p99 of refreshes and codes" + at, fmt.Sprintf("≤ %d × p99 at %s × capacity", slowdownBar, page.Number(half.load)), page.Number(slowdown) + " ×", slowdown <= slowdownBar},
		bar{"goodput" + at, fmt.Sprintf("≥ %v × capacity", goodputBar), page.Number(most.goodput/r.capacity) + " ×", most.goodput >= goodputBar*r.capacity},
		bar{"useful work" + at, "shown", percent(most.useful) + " % of the processor", true},
	)
	for _, found := range r.recoveries {
		if found.control == control {
			all = append(all, bar{
				"recovery after " + page.Number(found.load) + " × capacity", fmt.Sprintf("≤ %d s", recoveryBar), page.Number(found.seconds) + " s",
				found.ok && found.seconds <= recoveryBar,
			})
		}
	}
	memory := float64(most.memoryPeak) / float64(half.memoryPeak)
	all = append(all, bar{
		"peak memory" + at, fmt.Sprintf("≤ %v × peak at %s × capacity", memoryBar, page.Number(half.load)), page.Number(memory) + " ×", memory <= memoryBar,
	})
	return append(all, r.noticed(control)...)
}

// ownWork is the processor time that all refreshes and codes of a row would take, as a share of the time.
func (r *report) ownWork(row *row) (work float64) {
	for _, c := range r.costs {
		if c.class == refresh || c.class == code {
			f := row.classes[c.class]
			work += float64(f.due()+f.late) / row.seconds * c.server / 1e6
		}
	}
	return work
}

// noticed measures how a client over its limit affects the other clients.
func (r *report) noticed(control string) (all []bar) {
	for i := range r.rows {
		with := &r.rows[i]
		if with.series != greedySeries || with.control != control || !with.greedy {
			continue
		}
		without := r.find(greedySeries, control, with.load, false)
		if without == nil {
			continue
		}
		lost := without.tokens.success() - with.tokens.success()
		all = append(all, bar{
			fmt.Sprintf("refreshes and codes lost to a client over its limit, %s × capacity", page.Number(with.load)),
			"≤ " + percent(noticeBar) + " %", percent(max(lost, 0)) + " %", lost <= noticeBar,
		})
	}
	return all
}
