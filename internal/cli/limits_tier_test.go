package cli

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
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
