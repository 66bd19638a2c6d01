package chart

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// scale is the range of an axis, with its tick marks.
type scale struct {
	low, high float64
	log       bool
	ticks     []tick
}

type tick struct {
	value float64
	label string
}

// fraction returns where a value is in the range: 0 at its start, 1 at its end.
func (s *scale) fraction(v float64) float64 {
	if s.log {
		return math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return (v - s.low) / (s.high - s.low)
}

// named returns an axis with a place for each name. It leaves out labels to have at most most of
// them.
func named(names []string, most int) scale {
	s := scale{low: -0.5, high: float64(len(names)) - 0.5}
	every := (len(names) + most - 1) / most
	for i := 0; i < len(names); i += every {
		s.ticks = append(s.ticks, tick{float64(i), names[i]})
	}
	return s
}

// linear returns an axis from low to high with at most most steps.
func linear(low, high float64, most int) scale {
	if low == high {
		low, high = low-0.5, high+0.5
	}
	return scale{low: low, high: high, ticks: ticksBetween(low, high, stepOf(high-low, most))}
}

// fromZero returns an axis from 0 to a tick mark at least 2 % above the highest value.
func fromZero(highest float64) scale {
	if highest <= 0 {
		highest = 1
	}
	step := stepOf(highest, 5)
	high := step * math.Ceil(highest*1.02/step-1e-9)
	return scale{high: high, ticks: ticksBetween(0, high, step)}
}

// stepOf returns a step of 1, 2 or 5 times a power of ten that divides a range into at most most steps.
func stepOf(span float64, most int) float64 {
	rough := span / float64(most)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= rough*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func ticksBetween(low, high, step float64) (ticks []tick) {
	for i := int(math.Ceil(low/step - 1e-9)); float64(i)*step <= high+step*1e-9; i++ {
		ticks = append(ticks, tick{float64(i) * step, decimal(float64(i)*step, step)})
	}
	return ticks
}

// decimal writes a value of 0 or more with the decimals that steps of this size need.
func decimal(v, step float64) string {
	switch {
	case step >= 1e9 && v != 0:
		return decimal(v/1e9, step/1e9) + " G"
	case step >= 1e6 && v != 0:
		return decimal(v/1e6, step/1e6) + " M"
	case step >= 1:
		return Count(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', int(math.Ceil(-math.Log10(step)-1e-9)), 64)
}

// logarithmic returns an axis that ends at 1, 2 or 5 times a power of ten. Its tick marks are at
// these values or, above two decades, at powers of ten.
func logarithmic(low, high float64) scale {
	var all []float64
	for power := math.Floor(math.Log10(low)) - 1; power <= math.Ceil(math.Log10(high))+1; power++ {
		for _, m := range []float64{1, 2, 5} {
			all = append(all, m*math.Pow(10, power))
		}
	}
	from, to := 0, len(all)-1
	for all[from+1] <= low*(1+1e-9) {
		from++
	}
	for to > from+1 && all[to-1] >= high*(1-1e-9) {
		to--
	}
	s := scale{low: all[from], high: all[to], log: true}
	decades := math.Log10(s.high / s.low)
	for i := from; i <= to; i++ {
		if decades <= 2 || i%3 == 0 && i/3%int(math.Ceil(decades/10)) == 0 { // every third is a power of ten
			s.ticks = append(s.ticks, tick{all[i], decimal(all[i], all[i])})
		}
	}
	return s
}

// overDays returns an axis of seconds since 1970 with about most tick marks: at round times of the
// day, or at days.
func overDays(low, high float64, most int) scale {
	s := scale{low: low, high: high}
	step := timeStep(time.Duration((high-low)*float64(time.Second)), most)
	layout := "15:04"
	if step < time.Minute {
		layout = "15:04:05"
	}
	for at := time.UnixMicro(int64(low * 1e6)).UTC().Truncate(step); ; at = at.Add(step) {
		v := float64(at.UnixMicro()) / 1e6
		if v > high {
			return s
		}
		label := at.Format(layout)
		if step >= time.Hour && at.Equal(at.Truncate(24*time.Hour)) {
			label = at.Format("2 Jan")
		}
		if v >= low {
			s.ticks = append(s.ticks, tick{v, label})
		}
	}
}

// timeStep returns the time between two tick marks, for about most of them.
func timeStep(span time.Duration, most int) (step time.Duration) {
	const day = 24 * time.Hour
	for _, step = range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day,
	} {
		if span/step <= time.Duration(most) {
			break
		}
	}
	return step
}

// place writes a coordinate of the drawing.
func place(v float64) string {
	text := strconv.FormatFloat(v, 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Count writes a number with commas.
func Count[N int | int64 | uint64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
