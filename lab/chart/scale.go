package chart

import (
	"math"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	textnumber "golang.org/x/text/number"
	"gonum.org/v1/plot"
)

// scale is the range of an axis, with its tick marks.
type scale struct {
	low, high float64
	marks     []plot.Tick
	kind      plot.Normalizer
}

// span is the range of values.
type span struct{ low, high float64 }

func noSpan() span { return span{math.Inf(1), math.Inf(-1)} }

func (s span) with(v float64) span { return span{min(s.low, v), max(s.high, v)} }

func (s span) empty() bool { return !(s.low <= s.high) }

// horizontal returns the scale of an X axis. It has at most marks tick marks.
func (a Axis) horizontal(values span, marks int) scale {
	if a.Min != a.Max {
		values = span{a.Min, a.Max}
	}
	switch {
	case a.Scale == Log:
		return logarithmic(values)
	case values.low == values.high:
		values = span{values.low - 0.5, values.high + 0.5}
	}
	s := scale{low: values.low, high: values.high, kind: plot.LinearScale{}}
	if a.Scale == Time {
		s.marks = timeMarks(s.low, s.high, marks)
	} else {
		s.marks = marksBetween(s.low, s.high, stepOf(s.high-s.low, marks))
	}
	return s
}

// vertical returns the scale of a Y axis: from 0 to a tick mark at least 2 % above the highest
// value.
func (a Axis) vertical(values span) scale {
	switch {
	case a.Min != a.Max && a.Scale == Log:
		return logarithmic(span{a.Min, a.Max})
	case a.Min != a.Max:
		return scale{low: a.Min, high: a.Max, marks: marksBetween(a.Min, a.Max, stepOf(a.Max-a.Min, 5)), kind: plot.LinearScale{}}
	case a.Scale == Log:
		return logarithmic(values)
	}
	low, high := min(0, values.low), max(0, values.high)
	if low == high {
		high = 1
	}
	step := stepOf(high-low, 5)
	low = step * math.Floor(low*1.02/step+1e-9)
	high = step * math.Ceil(high*1.02/step-1e-9)
	return scale{low: low, high: high, marks: marksBetween(low, high, step), kind: plot.LinearScale{}}
}

// stepOf returns a step of 1, 2 or 5 times a power of ten. It divides the span into at most marks
// steps.
func stepOf(span float64, marks int) float64 {
	rough := span / float64(marks)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= rough*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func marksBetween(low, high, step float64) (marks []plot.Tick) {
	for i := int(math.Ceil(low/step - 1e-9)); float64(i)*step <= high+step*1e-9; i++ {
		v := float64(i) * step
		marks = append(marks, plot.Tick{Value: v, Label: number(v, step)})
	}
	return marks
}

// number writes a value with the decimals that steps of this size need.
func number(v, step float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, " G"}, {1e6, " M"}} {
		if step >= unit.size && v != 0 {
			return number(v/unit.size, step/unit.size) + unit.name
		}
	}
	decimals := 0
	if step < 1 {
		decimals = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	return message.NewPrinter(language.English).Sprint(textnumber.Decimal(v, textnumber.Scale(decimals)))
}

// logarithmic returns a scale that ends at 1, 2 or 5 times a power of ten. Its tick marks are at
// these values or, above two decades, at powers of ten.
func logarithmic(values span) scale {
	var all []float64
	for power := math.Floor(math.Log10(values.low)) - 1; power <= math.Ceil(math.Log10(values.high))+1; power++ {
		for _, m := range []float64{1, 2, 5} {
			all = append(all, m*math.Pow(10, power))
		}
	}
	from, to := 0, len(all)-1
	for all[from+1] <= values.low*(1+1e-9) {
		from++
	}
	for to > from+1 && all[to-1] >= values.high*(1-1e-9) {
		to--
	}
	s := scale{low: all[from], high: all[to], kind: plot.LogScale{}}
	decades := math.Log10(s.high / s.low)
	for i := from; i <= to; i++ {
		// every third one is a power of ten
		if decades <= 2 || i%3 == 0 && i/3%int(math.Ceil(decades/10)) == 0 {
			s.marks = append(s.marks, plot.Tick{Value: all[i], Label: number(all[i], all[i])})
		}
	}
	return s
}

// timeMarks returns tick marks at round times of the day, or at days.
func timeMarks(low, high float64, marks int) (all []plot.Tick) {
	step := timeStep(time.Duration((high-low)*float64(time.Second)), marks)
	layout := "15:04"
	if step < time.Minute {
		layout = "15:04:05"
	}
	at := time.UnixMicro(int64(low * 1e6)).UTC().Truncate(step)
	for ; Seconds(at) <= high; at = at.Add(step) {
		if Seconds(at) < low {
			continue
		}
		label := at.Format(layout)
		if step >= time.Hour && at.Equal(at.Truncate(24*time.Hour)) {
			label = at.Format("2 Jan")
		}
		all = append(all, plot.Tick{Value: Seconds(at), Label: label})
	}
	return all
}

// timeStep returns the time between two tick marks, for about marks of them at most.
func timeStep(span time.Duration, marks int) (step time.Duration) {
	const day = 24 * time.Hour
	for _, step = range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day,
	} {
		if span/step <= time.Duration(marks) {
			break
		}
	}
	return step
}
