package overload_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict/fielderr"
)

func TestSettingsAreValidated(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*overload.Settings)
		want   string // path of the problem; empty: none
	}{
		{"defaults", func(*overload.Settings) {}, ""},
		{"off", func(s *overload.Settings) { s.Mode = ratelimit.Off }, ""},
		{"lowest", func(s *overload.Settings) { s.Target, s.MaxInFlight = time.Millisecond, 10 }, ""},
		{"highest", func(s *overload.Settings) { s.Target, s.MaxInFlight = time.Second, 1_000_000 }, ""},
		{"no mode", func(s *overload.Settings) { s.Mode = ratelimit.Unset }, "mode"},
		{"unknown mode", func(s *overload.Settings) { s.Mode = "on" }, "mode"},
		{"target too short", func(s *overload.Settings) { s.Target = time.Millisecond - 1 }, "target"},
		{"target too long", func(s *overload.Settings) { s.Target = time.Second + 1 }, "target"},
		{"too few at once", func(s *overload.Settings) { s.MaxInFlight = 9 }, "max_in_flight"},
		{"too many at once", func(s *overload.Settings) { s.MaxInFlight = 1_000_001 }, "max_in_flight"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := overload.DefaultSettings()
			tt.change(&s)
			var paths string
			for _, e := range fielderr.Of(s.Validate()) {
				paths += e.Path
			}
			check.Equal(t, "problems", paths, tt.want)
		})
	}
}
