package cli

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestSharedIsShown: as rows of the policy, in the lists of clients and of tiers, and as the counters of all users and of
// an address.
func TestSharedIsShown(t *testing.T) {
	const (
		total  = `"total":[{"name":"all","requests":9,"window":"60s"}]`
		source = `"source":[{"name":"per-address","requests":5,"window":"60s"}]`
	)
	server, _ := answering(t, map[string]string{
		"/policies/shop": `{"client_id":"shop",` + total + `,"effective":{"mode":"enforce","user":[],"client":[],` + total + `,` + source + `},"meta":{"source":"api"}}`,
		"/clients/shop/counters": `{"client_id":"shop","counters":[{"client_id":"shop","total":true,"limit":{"name":"all","requests":9,"window":"60s"}},
			{"client_id":"shop","source":"2001:db8::/64","limit":{"name":"per-address","requests":5,"window":"60s"}}]}`,
		"/clients": `{"clients":[{"client_id":"shop","source":"api","effective":{"mode":"enforce",` + total + `,` + source + `}},
			{"client_id":"app","source":"api","effective":{"mode":"enforce"}}]}`,
		"/unregistered":    `{}`,
		"/tiers":           `{"tiers":[{"name":"gold",` + source + `},{"name":"plain"}]}`,
		"/candidates/shop": `{"client_id":"shop",` + source + `}`,
	})
	flags := asOperator(server)
	for _, tt := range []struct{ args, want string }{
		{"limits get shop", "\ntotal limits 9/60s,name=all changed here\nsource limits 5/60s,name=per-address all clients\n"},
		{"limits top shop --counters", "\nshop (all users) 9/60s,name=all "},
		{"limits top shop --counters", "\nshop (from 2001:db8::/64) 5/60s,name=per-address "},
		{"limits list", "CLIENT LIMITS SHARED LIMITS FROM "},
		{"limits list", "\nshop enforce - - total 9/60s,name=all; source 5/60s,name=per-address changed here "},
		{"limits list", "\napp enforce - - - changed here "},
		{"limits list --tiers", "TIER MODE USER LIMITS CLIENT LIMITS SHARED LIMITS CLIENTS NOTE\ngold - - - source 5/60s,name=per-address 0"},
		{"limits list --tiers", "\nplain - - - - 0"},
		{"limits get shop --candidate", "\nclient limits -\nsource limits 5/60s,name=per-address\n"},
	} {
		has(t, table(runOK(t, "", append(strings.Fields(tt.args), flags...)...)), tt.want)
	}
}

// TestColumnOfSharedLimits: it is there only if any row has something in it.
func TestColumnOfSharedLimits(t *testing.T) {
	server, _ := answering(t, map[string]string{"/tiers": `{"tiers":[{"name":"plain"}]}`})
	stdout := runOK(t, "", "limits", "list", "--tiers", "--token", "x", "--issuer", "http://127.0.0.1", "--server", server)
	has(t, table(stdout), "CLIENT LIMITS CLIENTS NOTE\nplain - - - 0") // no empty column
}

// TestResetOfASource: it is shown, and so is that of the total, as in the counters. A name that cannot be printed is refused.
func TestResetOfASource(t *testing.T) {
	s := newLimitsServer(t)
	stdout, _ := s.limits(0, "reset shop --source 2001:db8::9")
	has(t, stdout, "The counts of shop from 2001:db8::/64 are now forgotten")
	stdout, _ = s.limits(0, "audit --target clients/shop/counters")
	has(t, table(stdout), " reset clients/shop/counters (from 2001:db8::/64)\n")
	s.limits(0, "reset shop --total")
	stdout, _ = s.limits(0, "audit --target clients/shop/counters")
	has(t, table(stdout), " reset clients/shop/counters (all users)\n")
	_, stderr := s.limits(1, "reset shop --user x\x1by")
	has(t, stderr, "username: has an unprintable character")
}

// TestGrantsAndSourcesInAFile: what is set by flags is exported, and applied again; it is undone; what cannot be is refused
// with its line.
func TestGrantsAndSourcesInAFile(t *testing.T) {
	s := newLimitsServer(t)
	s.limits(0, "set --source 500/60s --yes")
	s.limits(0, "set shop --user 10/10m,grants=refresh_token+password --total 900/60s --source 200/60s --yes")
	s.limits(0, "set shop --for-user ada --user 20/10m,grants=refresh_token --yes")
	s.limits(0, "set --tier gold --source 300/60s --yes")
	s.limits(0, "candidate set shop --source 100/60s")
	stdout, _ := s.limits(0, "get shop")
	has(t, table(stdout), "user limits 10/10m,grants=refresh_token+password changed here\n", "\ntotal limits 900/60s,name=total-per-minute changed here\nsource limits 200/60s,")
	s.limits(0, "export -f FILE")
	text, err := os.ReadFile(s.file)
	check.OK(t, err)
	has(t, string(text), `settings:
  default:
    source:
      - name: source-per-minute
        requests: 500
        window: 60s
`, `    user:
      - name: per-10m
        requests: 10
        window: 10m
        grants:
          - refresh_token
          - password
`)
	before := s.version()
	s.limits(0, "apply -f FILE --prune --yes")
	check.Equal(t, "version", s.version(), before)
	s.limits(0, "set shop --user 10/10m --yes")
	stdout, _ = s.limits(1, "diff -f FILE")
	has(t, stdout, "10/10m -> 10/10m,grants=refresh_token+password")
	s.limits(0, "apply -f FILE --prune --yes")
	s.limits(0, "unset shop --field source --yes")
	stdout, _ = s.limits(0, "get shop")
	has(t, table(stdout), "source limits 500/60s,name=source-per-minute all clients")
	s.limits(0, "undo "+strconv.FormatInt(s.version(), 10)+" --yes")
	stdout, _ = s.limits(0, "diff -f FILE")
	check.Equal(t, "differences after all", stdout, "")

	_, stderr := s.limits(1, "set shop --limit 5/60s,grants=password --total 5/60s,name=per-minute")
	has(t, stderr, "client[0].grants: is allowed only in the list user", "total[0].name: ")

	s.write(`policies:
  shop:
    user:
      - { requests: 5, grants: [ refresh ] }
    client:
      - { requests: 5, grants: [ password ] }
    source:
      - { requests: 5 }
`)
	_, stderr = s.limits(2, "apply -f FILE --yes")
	has(t, stderr, `policies.shop.user[0].grants[0]: "refresh" is not one of`, s.file+":4)", "policies.shop.client[0].grants: is allowed only in the list user", s.file+":6)",
		"policies.shop.source[0].name: ", s.file+":8)")
}
