package cli

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestTiersAreShown: in a list of their own, beside the clients that have them, and where each value of a client
// comes from.
func TestTiersAreShown(t *testing.T) {
	flags, _ := readAPI(t)
	for _, tt := range []struct{ args, want string }{
		{"limits list --tiers", `TIER MODE USER LIMITS CLIENT LIMITS CLIENTS NOTE
gold - 20/60s - 2 n
silver off - - 0
`},
		{"limits get --tier gold", `SETTING VALUE FROM
mode dry_run tier
user limits 20/60s tier
client limits - all clients
over limit reuse tier
ban denials=5,within=1m,for=5m,factor=2,max=24h,forget=24h tier
criticality sheddable tier
hide headers no all clients
clients 2
note
`},
		{"limits get shop", `SETTING VALUE FROM
mode dry_run tier gold
trusted no all clients
user limits 20/60s tier gold
client limits 3/1s changed here
over limit reuse tier gold
ban denials=5,within=1m,for=5m,factor=2,max=24h,forget=24h tier gold
criticality sheddable tier gold
hide headers no all clients
user ada 1/60s changed here noisy
user bob 500/60s changed here
and 1 more
note
`},
	} {
		check.Equal(t, tt.args, table(runOK(t, "", append(strings.Fields(tt.args), flags...)...)), tt.want)
	}
	has(t, table(runOK(t, "", append([]string{"limits", "list"}, flags...)...)), "changed here, tier gold, 3 users' own")
	has(t, runOK(t, "", append([]string{"limits", "list", "--tiers", "-o", "json"}, flags...)...), `"clients": 2`)
}

func TestTierCommandLine(t *testing.T) {
	flags, asked := readAPI(t)
	for _, tt := range []struct{ args, says string }{
		{"limits set --tier gold", "nothing to set"},
		{"limits set --tier gold --limit 5", "such as 10/60s"},
		{"limits get shop --tier gold", "CLIENT and --tier contradict each other"},
		{"limits unset shop --tier gold", "CLIENT and --tier contradict each other"},
		{"limits set shop --mode off", "--mode is about a tier"},
		{"limits set --mode off", "--mode is about a tier"},
		{"limits set --for-user ada --user 1/60s", "--for-user needs a CLIENT"},
		{"limits set shop --for-user= --user 1/60s", "the name of a user"},
		{"limits set shop --for-user ada", "nothing to set: give --user"},
		{"limits set shop --for-user ada --limit 1/60s", "--limit is about the client"},
		{"limits set shop --for-user ada --client 1/60s", "--client is about the client"},
		{"limits set shop --for-user ada --over-limit reuse", "--over-limit is about the client"},
		{"limits set shop --over-limit wait", `--over-limit: "wait" is none of deny, reuse`},
		{"limits set --tier gold --over-limit wait", `--over-limit: "wait" is none of deny, reuse`},
		{"limits candidate set shop --over-limit reuse", "no limits to try"},
		{"limits set shop --for-user ada --criticality critical", "--criticality is about the client"},
		{"limits set shop --criticality high", `--criticality: "high" is none of critical_plus, critical, sheddable_plus, sheddable`},
		{"limits set shop --criticality=", "--criticality is empty"},
		{"limits set --criticality Critical", `--criticality: "Critical" is none of critical_plus`},
		{"limits set --tier gold --criticality high", `--criticality: "high" is none of critical_plus`},
		{"limits candidate set shop --limit 5/60s --criticality high", `--criticality: "high" is none of critical_plus`},
		{"limits candidate set shop --criticality critical", "no limits to try"},
		{"limits set shop", "--criticality"},
		{"limits set shop --for-user ada --tier gold", "--tier is about the client"},
		{"limits unset --for-user ada", "--for-user needs a CLIENT"},
		{"limits unset shop --for-user ada --field user", "--field is about the client"},
		{"limits unset --field tier", "none of user"},
	} {
		runFails(t, command.ExitUsage, tt.says, "", append(strings.Fields(tt.args), flags...)...)
	}
	if len(*asked) > 0 {
		t.Errorf("a command line that cannot be asked for %v", *asked)
	}
}
