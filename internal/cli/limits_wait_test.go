package cli

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestMaxWait: what the flags send, and what they take back.
func TestMaxWait(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"set shop --max-wait 2s --max-waiting 20", `/policies/shop {"max_wait":"2s","max_waiting":20}`},
		{"set shop --max-wait 1500ms", `/policies/shop {"max_wait":"1.5s"}`},
		{"set shop --max-wait 0", `/policies/shop {"max_wait":"0s","max_waiting":null}`},
		{"set --max-wait 2s", `/settings {"default":{"max_wait":"2s"}}`},
		{"set --tier gold --max-wait 2s --max-waiting 3", `/tiers/gold {"max_wait":"2s","max_waiting":3}`},
		{"unset shop --field max-wait", `/policies/shop {"max_wait":null,"max_waiting":null}`},
		{"unset shop --field max-waiting", `/policies/shop {"max_waiting":null}`},
		{"unset --field max-wait", `/settings {"default":{"max_wait":null,"max_waiting":null}}`},
		{"trust shop on", `/policies/shop {"ban":null,"max_wait":null,"max_waiting":null,"over_limit":null,"trusted":true}`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			flags, last := operatorAPI(t)
			runOK(t, "", strings.Fields("limits "+tt.args+flags)...)
			check.Equal(t, "request", *last, tt.want)
		})
	}
}

// TestMaxWaitCommandLine: what is refused before anything is sent.
func TestMaxWaitCommandLine(t *testing.T) {
	flags, _ := operatorAPI(t)
	for _, tt := range []struct{ args, says string }{
		{"set shop --max-wait soon", `"soon" is no duration`},
		{"set shop --max-wait 2", `"2" is no duration`},
		{"set --tier gold --max-waiting many", `"many" is no whole number`},
		{"set shop --for-user ada --max-wait 2s", "--max-wait is about the client"},
		{"set shop --for-user ada --max-waiting 2", "--max-waiting is about the client"},
		{"candidate set shop --max-wait 2s", "no limits to try"},
	} {
		runFails(t, command.ExitUsage, tt.says, "", strings.Fields("limits "+tt.args+flags)...)
	}
}
