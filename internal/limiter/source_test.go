package limiter_test

import (
	"net/netip"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter"
)

func TestNames(t *testing.T) {
	type names struct {
		Source string
		Around []string
		Site   string
	}
	v4 := names{"192.0.2.7", []string{"192.0.2.0/24"}, ""}
	v6 := names{"2001:db8:1:203::/64", []string{"2001:db8:1::/48", "2001:db8:1:200::/56"}, "2001:db8:1::/48"}
	local := names{"fe80::/64", []string{"fe80::/48", "fe80::/56"}, "fe80::/48"}
	for addr, want := range map[string]names{
		"192.0.2.7":              v4,
		"::ffff:192.0.2.7":       v4,
		"2001:db8:1:203::1":      v6,
		"2001:db8:1:203:ffff::2": v6,
		"fe80::1%eth0":           local,
		"":                       {"invalid IP", nil, ""},
	} {
		a, _ := netip.ParseAddr(addr)
		check.Equal(t, addr, names{limiter.SourceOf(a), limiter.NetworksAround(a), limiter.SiteOf(a)}, want)
	}
}

// TestParseSource: the address is given in any form, or as it is shown.
func TestParseSource(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8:0:0:1::9": "2001:db8::/64", "2001:db8::/64": "2001:db8::/64",
		"invalid IP": "invalid IP",
	} {
		got, err := limiter.ParseSource(text)
		check.OK(t, err)
		check.Equal(t, text, got, want)
	}
	for _, text := range []string{"", "192.0.2.7/32", "2001:db8::/48", "2001:db8::/65"} {
		_, err := limiter.ParseSource(text)
		check.ErrorSays(t, err, "is neither an address nor the /64 of an IPv6 address")
	}
}
