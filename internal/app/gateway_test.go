package app

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
)

// TestDescribeGateway checks that the log line at the start of a gateway names its upstream and
// limits, and is short whatever the configuration contains.
func TestDescribeGateway(t *testing.T) {
	const upstream = "https://idp.example"
	tight := []ratelimit.Limit{ratelimit.NewLimit("per-minute", 10, time.Minute), ratelimit.NewLimit("per-second", 2, time.Second)}
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("/tenant-%d/token", i)
	}
	for name, tc := range map[string]struct {
		set  config.Gateway
		in   ratelimit.Settings
		want string
	}{
		"enforced": {
			config.Gateway{Upstream: upstream, PublicURL: "https://login.example", TokenPath: []string{"/oauth2/token", "/token"}},
			ratelimit.Settings{CanaryPercent: 100, Default: ratelimit.Policy{User: tight, Client: tight[:1]}},
			`upstream=https://idp.example public_url=https://login.example token_path=/oauth2/token /token mode=enforce canary_percent=100 user_limits=per-minute:10/1m per-second:2/1s client_limits=per-minute:10/1m`,
		},
		"canary": {
			config.Gateway{Upstream: upstream},
			ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 5},
			`upstream=https://idp.example public_url= mode=enforce canary_percent=5`,
		},
		"dry-run": {
			config.Gateway{Upstream: upstream},
			ratelimit.Settings{Mode: ratelimit.DryRun, CanaryPercent: 5},
			`upstream=https://idp.example public_url= mode=dry_run`,
		},
		"of this instance": {
			config.Gateway{Upstream: upstream},
			ratelimit.Settings{Mode: ratelimit.DryRun, Instance: ratelimit.Enforce, CanaryPercent: 5},
			`upstream=https://idp.example public_url= mode=enforce`,
		},
		"judge": {
			config.Gateway{Judge: true},
			ratelimit.Settings{Mode: ratelimit.Off, Default: ratelimit.Policy{Total: tight, Source: tight[1:]}},
			`judge=true mode=off total_limits=per-minute:10/1m per-second:2/1s source_limits=per-second:2/1s`,
		},
		"many paths": {
			config.Gateway{Upstream: upstream, TokenPath: many},
			ratelimit.Settings{Mode: ratelimit.Off},
			`upstream=https://idp.example public_url= token_path=` + strings.Join(many, " ")[:maxDescribed] + `… mode=off`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range describeGateway(&tc.set, tc.in) {
				got = append(got, slog.Attr.String(a))
			}
			check.Equal(t, "attributes", strings.Join(got, " "), tc.want)
		})
	}
}
