package chart

import (
	"math"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestTicks: tick marks are at round values, and the axis contains its range.
func TestTicks(t *testing.T) {
	t.Parallel()
	at := func(day, hour, minute, second int) float64 {
		return float64(time.Date(2026, 5, day, hour, minute, second, 0, time.UTC).Unix())
	}
	for name, tt := range map[string]struct {
		scale scale
		want  string
	}{
		"nothing":     {fromZero(0), "0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0 | 1.2"},
		"small":       {fromZero(0.17), "0.00 | 0.05 | 0.10 | 0.15 | 0.20"},
		"seven":       {fromZero(7.3), "0 | 2 | 4 | 6 | 8"},
		"at a mark":   {fromZero(10), "0 | 2 | 4 | 6 | 8 | 10 | 12"},
		"many":        {fromZero(1.4e6), "0 | 500,000 | 1,000,000 | 1,500,000"},
		"millions":    {fromZero(4.4e6), "0 | 1 M | 2 M | 3 M | 4 M | 5 M"},
		"percent":     {linear(90, 100, 5), "90 | 92 | 94 | 96 | 98 | 100"},
		"log":         {logarithmic(3, 70), "2 | 5 | 10 | 20 | 50 | 100"},
		"log, wide":   {logarithmic(1, 2e8), "1 | 10 | 100 | 1,000 | 10,000 | 100,000 | 1 M | 10 M | 100 M"},
		"log, 1":      {logarithmic(10, 10), "10 | 20"},
		"log, a mark": {logarithmic(20, 50), "20 | 50"},
		"names":       {named([]string{"a", "b", "c", "d", "e"}, 3), "a | c | e"},
		"seconds":     {overDays(at(4, 12, 0, 3), at(4, 12, 0, 38), 5), "12:00:10 | 12:00:20 | 12:00:30"},
		"hours":       {overDays(at(4, 22, 10, 0), at(5, 1, 30, 0), 5), "23:00 | 5 May | 01:00"},
		"days":        {overDays(at(4, 12, 0, 0), at(7, 12, 0, 0), 5), "5 May | 6 May | 7 May"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var labels []string
			for _, mark := range tt.scale.ticks {
				labels = append(labels, mark.label)
			}
			check.Equal(t, "labels", strings.Join(labels, " | "), tt.want)
		})
	}
	s := logarithmic(1, 100)
	for v, want := range map[float64]float64{1: 0, 10: 0.5, 100: 1} {
		if got := s.fraction(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		check.Equal(t, "count", Count(n), want)
	}
}
