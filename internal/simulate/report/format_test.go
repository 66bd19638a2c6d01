package report

import (
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate"
)

func TestPercent(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]string{
		0: "0 %", 1: "100 %", 0.5: "50 %", 0.1234: "12.3 %", 0.01234: "1.23 %", 0.0004: "0.04 %", 0.0000123: "0.001 %", 1e-9: "< 0.001 %",
		0.999: "99.9 %", 0.9994: "99.94 %", 0.99999: "99.999 %", 0.9999999: "> 99.999 %", 0.97: "97 %",
	} {
		check.Equal(t, "percent", Percent(share), want)
	}
}

func TestExactPercent(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]string{0.999: "99.9 %", 0.0099: "0.99 %", 0.9912345: "99.12345 %", 1: "100 %", 0.29: "29 %"} {
		check.Equal(t, "percent", ExactPercent(share), want)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for s, want := range map[simulate.Seconds]string{0: "0s", 0.0004: "0s", 0.25: "250ms", 57.001: "57s", 90: "1m30s", 3600: "1h", 90061: "25h1m1s"} {
		check.Equal(t, "duration", duration(s), want)
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	check.Equal(t, "printable", printable("a\u202eb\x1b[31m\n\xffä€"), `a\u202eb\x1b[31m\n`+"\ufffdä€")
	check.Equal(t, "lines", printableLines("a:\n  \"\r\"\n"), "a:\n  \"\\r\"\n")
}
