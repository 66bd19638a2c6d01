package syntax

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
)

func TestParseLimit(t *testing.T) {
	perMinute := func(change func(l *ratelimit.Limit)) ratelimit.Limit {
		l := ratelimit.NewLimit("per-minute", 10, time.Minute)
		if change != nil {
			change(&l)
		}
		return l
	}
	tests := []struct {
		spec string
		want ratelimit.Limit
		says string
	}{
		{"10/60s", perMinute(nil), ""},
		{"10/1m", perMinute(nil), ""},
		{"2/1s", ratelimit.NewLimit("per-second", 2, time.Second), ""},
		{"5/90s", ratelimit.NewLimit("per-90s", 5, 90*time.Second), ""},
		{
			"100/24h,name=daily,frames=24,algorithm=sliding,soft=0.5",
			ratelimit.Limit{Name: "daily", Requests: 100, Window: 24 * time.Hour, Frames: 24, Algorithm: "sliding", SoftRatio: 0.5, OnOutage: "share"},
			"",
		},
		{"10/60s,on_outage=deny", perMinute(func(l *ratelimit.Limit) { l.OnOutage = "deny" }), ""},
		{"10/60s,strict", perMinute(func(l *ratelimit.Limit) { l.MakeStrict() }), ""},
		{"10/60s,strict,lease_wait=100ms", perMinute(func(l *ratelimit.Limit) { l.MakeStrict(); l.LeaseWait = 100 * time.Millisecond }), ""},
		{"10/60s,strict,algorithm=weighted,frames=1", ratelimit.Limit{}, `algorithm: "weighted" can exceed the limit`},
		{"10/60s,strict,on_outage=share", ratelimit.Limit{}, "on_outage: "},
		{"10/60s,strict,lease_wait=6s", ratelimit.Limit{}, "lease_wait: 6s is not"},
		{"10/60s,strict,lease_wait=long", ratelimit.Limit{}, `lease_wait: "long" is not a duration`},
		{"10/60s,lease_wait=1s", ratelimit.Limit{}, "lease_wait: is allowed only for a strict limit"},
		{"10/60s,grants=password+refresh_token", perMinute(func(l *ratelimit.Limit) { l.Grants = ratelimit.GrantPassword | ratelimit.GrantRefresh }), ""},
		{"10/60s,grants=", ratelimit.Limit{}, `grants[0]: "" is not one of authorization_code, refresh_token, password`},
		{"10/60s,grants=refresh", ratelimit.Limit{}, `grants[0]: "refresh" is not one of`},
		{"10/60s,grants=client_credentials", ratelimit.Limit{}, "grants[0]: \"client_credentials\" has no user"},
		{"10/60s,grants=password+password", ratelimit.Limit{}, `grants[1]: "password" is a duplicate`},
		{"10/60s,strict=yes", ratelimit.Limit{}, "strict: takes no value"},
		{"-5/0s", ratelimit.Limit{}, "requests: -5 is not between 1 and"},
		{"5/0s", ratelimit.Limit{}, "window: 0s is not above 0"},
		{"5/x y", ratelimit.Limit{}, "window: \"x y\" is not a duration"},
		{"5/60s,name=a b", ratelimit.Limit{}, "name: "},
		{"5/60s,frames=7", ratelimit.Limit{}, "frames: 7 frames do not divide"},
		{"5/60s,soft=2", ratelimit.Limit{}, "soft_ratio: 2 is not"},
		{"5/60s,algorithm=fixd", ratelimit.Limit{}, "algorithm: "},
		{"5/60s,on_outage=never", ratelimit.Limit{}, "on_outage: "},
		{"10", ratelimit.Limit{}, "REQUESTS/WINDOW"},
		{"ten/60s", ratelimit.Limit{}, `"ten" is not a number`},
		{"10/60", ratelimit.Limit{}, "with a unit"},
		{"10/60s,burst=5", ratelimit.Limit{}, `unknown option "burst"`},
		{"10/60s,frames=many", ratelimit.Limit{}, `frames: "many"`},
		{"10/60s,frames=0", ratelimit.Limit{}, "at least 1"},
		{"10/60s,soft=0", ratelimit.Limit{}, "more than 0"},
		{"10/60s,name=a,name=b", ratelimit.Limit{}, "name is given twice"},
		{"10/60s,strict,strict", ratelimit.Limit{}, "strict is given twice"},
		{"10/60s,frames", ratelimit.Limit{}, `"frames" is not`},
		{"10/60s,outage=deny", ratelimit.Limit{}, "on_outage, strict, lease_wait and grants"},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			got, err := ParseLimit(tt.spec)
			switch {
			case tt.says == "" && (err != nil || got != tt.want):
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("error %v does not say %q", err, tt.says)
			}
		})
	}
}

// TestLimitsAreShownAsTheyAreGiven: what is printed is a spec that reads back
// as the same limit.
func TestLimitsAreShownAsTheyAreGiven(t *testing.T) {
	for _, spec := range []string{
		"10/60s", "24/24h,frames=24", "5/90s,name=burst", "24/24h,name=daily,frames=24", "5/1s,algorithm=fixed", "5/1s,soft=0.5",
		"10/60s,on_outage=deny", "10/60s,on_outage=memory", "10/60s,frames=6,soft=0.9,on_outage=deny",
		"10/10m,strict", "10/60s,name=contract,frames=6,strict,lease_wait=100ms", "10/60s,frames=1,strict",
		"10/10m,grants=refresh_token", "10/60s,strict,grants=authorization_code+password",
	} {
		t.Run(spec, func(t *testing.T) {
			l, err := ParseLimit(spec)
			if got := ShowLimits([]ratelimit.Limit{l}); got != spec || err != nil {
				t.Errorf("shown as %s, %v", got, err)
			}
		})
	}
	if got := ShowLimits([]ratelimit.Limit{ratelimit.NewLimit("per-minute", 1, time.Minute)}); got != "1/60s" {
		t.Errorf("the usual is not left out: %s", got)
	}
	strictly := ratelimit.NewLimit("per-7s", 1, 7*time.Second)
	strictly.MakeStrict()
	if got := ShowLimits([]ratelimit.Limit{strictly}); got != "1/7s,strict" {
		t.Errorf("the usual of a strict limit is not left out: %s", got)
	}
}
