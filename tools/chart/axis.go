package chart

import (
	"math"
	"strconv"
	"time"
)

// axis maps values, from zero, to pixels, with marks at round numbers.
type axis struct {
	step  float64
	marks int
}

// niceAxis returns an axis that ends at least 2 % above the highest value, in steps of 1, 2 or
// 5 times a power of ten.
func niceAxis(highest float64) axis {
	if !(highest > 0) || math.IsInf(highest, 0) {
		return axis{step: 1, marks: 1}
	}
	rough := highest / 5
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= rough {
			step = m * power
			break
		}
	}
	return axis{step: step, marks: int(math.Ceil(highest*1.02/step - 1e-9))}
}

func (a axis) y(v float64) float64 {
	return plotBottom - plotHeight*v/(a.step*float64(a.marks))
}

func (a axis) ticks() []float64 {
	ticks := make([]float64, 0, a.marks+1)
	for i := range a.marks + 1 {
		ticks = append(ticks, float64(i)*a.step)
	}
	return ticks
}

// label writes a tick with as many decimals as the steps need.
func (a axis) label(v float64) string {
	decimals := 0
	if a.step < 1 {
		decimals = int(math.Ceil(-math.Log10(a.step) - 1e-9))
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// timeStep returns the time between two marks, so that there are at most about ten, and the
// layout of their labels.
func timeStep(span time.Duration) (step time.Duration, layout string) {
	steps := []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
	for _, step = range steps {
		if span/step <= 10 {
			break
		}
	}
	if step < time.Minute {
		return step, "15:04:05"
	}
	return step, "15:04"
}
