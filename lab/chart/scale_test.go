package chart

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

func labels(s scale) string {
	all := make([]string, 0, len(s.marks))
	for _, m := range s.marks {
		all = append(all, m.Label)
	}
	return strings.Join(all, " | ")
}

func TestVertical(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		axis Axis
		span
		want string
	}{
		"nothing":     {Axis{}, span{0, 0}, "0.0 | 0.2 | 0.4 | 0.6 | 0.8 | 1.0 | 1.2"},
		"small":       {Axis{}, span{0, 0.17}, "0.00 | 0.05 | 0.10 | 0.15 | 0.20"},
		"seven":       {Axis{}, span{7.3, 7.3}, "0 | 2 | 4 | 6 | 8"},
		"at a mark":   {Axis{}, span{0, 10}, "0 | 2 | 4 | 6 | 8 | 10 | 12"},
		"below 0":     {Axis{}, span{-3, 7}, "-4 | -2 | 0 | 2 | 4 | 6 | 8"},
		"only below":  {Axis{}, span{-3000, -1}, "-4,000 | -3,000 | -2,000 | -1,000 | 0"},
		"many":        {Axis{}, span{0, 1.4e6}, "0 | 500,000 | 1,000,000 | 1,500,000"},
		"millions":    {Axis{}, span{0, 4.4e6}, "0 | 1 M | 2 M | 3 M | 4 M | 5 M"},
		"given":       {Axis{Min: 10, Max: 14}, span{0, 100}, "10 | 11 | 12 | 13 | 14"},
		"log":         {Axis{Scale: Log}, span{3, 70}, "2 | 5 | 10 | 20 | 50 | 100"},
		"log, wide":   {Axis{Scale: Log}, span{0.001, 2e5}, "0.001 | 0.01 | 0.1 | 1 | 10 | 100 | 1,000 | 10,000 | 100,000"},
		"log, 1":      {Axis{Scale: Log}, span{10, 10}, "10 | 20"},
		"log, given":  {Axis{Scale: Log, Min: 1, Max: 1e9}, span{5, 5}, "1 | 10 | 100 | 1,000 | 10,000 | 100,000 | 1 M | 10 M | 100 M | 1 G"},
		"log, exact":  {Axis{Scale: Log}, span{1, 100}, "1 | 2 | 5 | 10 | 20 | 50 | 100"},
		"log, a mark": {Axis{Scale: Log}, span{20, 50}, "20 | 50"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tt.axis.vertical(tt.span)
			check.Equal(t, "marks", labels(s), tt.want)
			if tt.axis.Min == tt.axis.Max && (s.low > tt.low || s.high < tt.high) {
				t.Errorf("the axis is from %v to %v", s.low, s.high)
			}
		})
	}
}

func TestHorizontal(t *testing.T) {
	t.Parallel()
	day := func(d, h, m, s int) float64 { return Seconds(time.Date(2026, 5, d, h, m, s, 0, time.UTC)) }
	for name, tt := range map[string]struct {
		axis Axis
		span
		want string
	}{
		"numbers":    {Axis{}, span{3, 5}, "3.0 | 3.5 | 4.0 | 4.5 | 5.0"},
		"one number": {Axis{}, span{3, 3}, "2.6 | 2.8 | 3.0 | 3.2 | 3.4"},
		"seconds":    {Axis{Scale: Time}, span{day(4, 12, 0, 3), day(4, 12, 0, 38)}, "12:00:10 | 12:00:20 | 12:00:30"},
		"hours":      {Axis{Scale: Time}, span{day(4, 22, 10, 0), day(5, 1, 30, 0)}, "23:00 | 5 May | 01:00"},
		"days":       {Axis{Scale: Time}, span{day(4, 12, 0, 0), day(7, 12, 0, 0)}, "5 May | 6 May | 7 May"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := labels(tt.axis.horizontal(tt.span, 5))
			check.Equal(t, "marks", got, tt.want)
		})
	}
}
