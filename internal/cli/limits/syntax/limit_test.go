package syntax

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/ratelimit"
)

func TestParseLimit(t *testing.T) {
	tests := []struct {
		spec string
		want adminapi.Limit
		says string
	}{
		{"10/60s", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s"}, ""},
		{"10/1m", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "1m"}, ""},
		{"2/1s", adminapi.Limit{Name: "per-second", Requests: 2, Window: "1s"}, ""},
		{"5/90s", adminapi.Limit{Name: "per-90s", Requests: 5, Window: "90s"}, ""},
		{
			"100/24h,name=daily,frames=24,algorithm=sliding,soft=0.5",
			adminapi.Limit{Name: "daily", Requests: 100, Window: "24h", Frames: 24, Algorithm: "sliding", SoftRatio: 0.5},
			"",
		},
		{"10/60s,on_outage=deny", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s", OnOutage: "deny"}, ""},
		{"10/60s,strict", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s", Strict: true}, ""},
		{"10/60s,strict,lease_wait=100ms", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s", Strict: true, LeaseWait: "100ms"}, ""},
		{"10/60s,strict,algorithm=weighted,frames=1", adminapi.Limit{}, `algorithm: "weighted" can exceed the limit`},
		{"10/60s,strict,on_outage=share", adminapi.Limit{}, "on_outage: "},
		{"10/60s,strict,lease_wait=6s", adminapi.Limit{}, "lease_wait: 6s is not"},
		{"10/60s,strict,lease_wait=long", adminapi.Limit{}, `lease_wait: "long" is not a duration`},
		{"10/60s,lease_wait=1s", adminapi.Limit{}, "lease_wait: is allowed only for a strict limit"},
		{"10/60s,grants=password+refresh_token", adminapi.Limit{Name: "per-minute", Requests: 10, Window: "60s", Grants: ratelimit.GrantPassword | ratelimit.GrantRefresh}, ""},
		{"10/60s,grants=", adminapi.Limit{}, `grants[0]: "" is not one of authorization_code, refresh_token, password`},
		{"10/60s,grants=refresh", adminapi.Limit{}, `grants[0]: "refresh" is not one of`},
		{"10/60s,grants=client_credentials", adminapi.Limit{}, "grants[0]: \"client_credentials\" has no user"},
		{"10/60s,grants=password+password", adminapi.Limit{}, `grants[1]: "password" is a duplicate`},
		{"10/60s,strict=yes", adminapi.Limit{}, "strict: takes no value"},
		{"-5/0s", adminapi.Limit{}, "requests: -5 is not between 1 and"},
		{"5/0s", adminapi.Limit{}, "window: 0s is not above 0"},
		{"5/x y", adminapi.Limit{}, "window: \"x y\" is not a duration"},
		{"5/60s,name=a b", adminapi.Limit{}, "name: "},
		{"5/60s,frames=7", adminapi.Limit{}, "frames: 7 frames do not divide"},
		{"5/60s,soft=2", adminapi.Limit{}, "soft_ratio: 2 is not"},
		{"5/60s,algorithm=fixd", adminapi.Limit{}, "algorithm: "},
		{"5/60s,on_outage=never", adminapi.Limit{}, "on_outage: "},
		{"10", adminapi.Limit{}, "REQUESTS/WINDOW"},
		{"ten/60s", adminapi.Limit{}, `"ten" is not a number`},
		{"10/60", adminapi.Limit{}, "with a unit"},
		{"10/60s,burst=5", adminapi.Limit{}, `unknown option "burst"`},
		{"10/60s,frames=many", adminapi.Limit{}, `frames: "many"`},
		{"10/60s,frames=0", adminapi.Limit{}, "at least 1"},
		{"10/60s,soft=0", adminapi.Limit{}, "more than 0"},
		{"10/60s,name=a,name=b", adminapi.Limit{}, "name is given twice"},
		{"10/60s,strict,strict", adminapi.Limit{}, "strict is given twice"},
		{"10/60s,frames", adminapi.Limit{}, `"frames" is not`},
		{"10/60s,outage=deny", adminapi.Limit{}, "on_outage, strict, lease_wait and grants"},
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
			if got := ShowLimits([]adminapi.Limit{l}); got != spec || err != nil {
				t.Errorf("shown as %s, %v", got, err)
			}
		})
	}
	usual := adminapi.Limit{Name: "per-minute", Requests: 1, Window: "60s", Frames: 1, Algorithm: "sliding", SoftRatio: 0.8, OnOutage: "share"}
	if got := ShowLimits([]adminapi.Limit{usual}); got != "1/60s" {
		t.Errorf("the usual is not left out: %s", got)
	}
	strictly := ratelimit.NewLimit("per-7s", 1, 7*time.Second)
	strictly.MakeStrict()
	if got := ShowLimits([]adminapi.Limit{adminapi.ShowLimit(strictly)}); got != "1/7s,strict" {
		t.Errorf("the usual of a strict limit is not left out: %s", got)
	}
}
