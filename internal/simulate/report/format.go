package report

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/chart"
)

// printable writes unprintable characters as in a Go string. A name is then on one line and in one
// direction, and different names look different.
func printable(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// printableLines is printable, but keeps line breaks.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// About writes a number, and marks an estimate.
func About(n uint64, estimated bool) string {
	if estimated {
		return "~" + chart.Count(n)
	}
	return chart.Count(n)
}

// Percent writes a share with at least two digits. It never rounds a part to nothing or to all.
func Percent(share float64) string {
	p := 100 * share
	digits := 10.0 // after the point: a tenth
	switch {
	case p > 0 && p < 0.0005:
		return "< 0.001 %"
	case p >= 99.9995 && p < 100:
		return "> 99.999 %"
	case p < 0.1 || p > 99.9:
		digits = 1000
	case p < 10:
		digits = 100
	}
	return strconv.FormatFloat(math.Round(p*digits)/digits, 'f', -1, 64) + " %"
}

// ExactPercent writes a share given by the user, with all its digits.
func ExactPercent(share float64) string {
	const digits = 1e9 // a share such as 0.999 is not exact
	return strconv.FormatFloat(math.Round(100*share*digits)/digits, 'f', -1, 64) + " %"
}

// duration writes seconds as in a configuration: 1m30s. It never writes a part of a second as zero.
func duration(s simulate.Seconds) string {
	d := s.Duration()
	switch {
	case d == 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return ratelimit.FormatWindow(d.Round(time.Second))
}

const minutes = "2 Jan 2006 15:04"

// over returns the period of a result.
func over(r *simulate.Result) string {
	if r.From.IsZero() {
		return "no requests"
	}
	return r.From.UTC().Format(minutes) + " to " + r.To.UTC().Format(minutes) + " UTC"
}

// counted returns a number with its noun.
func counted[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return chart.Count(n) + " " + many
}
