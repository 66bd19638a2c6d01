package main

import (
	"strings"
	"testing"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/check"
)

// TestTotalOnTheCommandLine: --total is a list of its own, whose limits have other names than those of the other lists.
func TestTotalOnTheCommandLine(t *testing.T) {
	f := limitFlags{both: []string{"10/60s"}, total: []string{"1000/60s", "5000/1h,name=hourly"}}
	doc := map[string]any{}
	check.OK(t, f.parse(doc))
	for field, want := range map[string]string{
		"user": "10/60s", "client": "10/60s", "total": "1000/60s,name=total-per-minute 5000/1h,name=hourly",
	} {
		list, _ := doc[field].([]adminapi.Limit)
		check.Equal(t, field, showLimits(list), want)
	}
	f = limitFlags{total: []string{"0/60s"}}
	check.ErrorSays(t, f.parse(map[string]any{}), "--total[0].requests")

	flags, _ := readAPI(t)
	for _, tt := range []struct{ args, says string }{
		{"limits set shop --for-user ada --user 1/60s --total 5/60s", "--total is about the client"},
		{"limits set shop --total 5/60s --preset okta", "--preset contradicts"},
		{"limits reset shop --user ada --total", "contradict each other"},
	} {
		_, stderr, status := run(t, "", append(strings.Fields(tt.args), flags...)...)
		if status != exitUsage || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s: status %d; it does not say %q: %s", tt.args, status, tt.says, stderr)
		}
	}
}

// TestTotalIsShown: as a row of the policy, and as the counter of all users.
func TestTotalIsShown(t *testing.T) {
	server, _ := answering(t, map[string]string{
		"/policies/shop": `{"client_id":"shop","total":[{"name":"all","requests":9,"window":"60s"}],
			"effective":{"mode":"enforce","user":[],"client":[],"total":[{"name":"all","requests":9,"window":"60s"}]},"meta":{"source":"api"}}`,
		"/clients/shop/counters": `{"client_id":"shop","counters":[{"client_id":"shop","total":true,"limit":{"name":"all","requests":9,"window":"60s"}}]}`,
	})
	flags := []string{"--token", "x", "--issuer", "http://127.0.0.1", "--server", server}
	for args, want := range map[string]string{
		"limits get shop":      "\ntotal limits 9/60s,name=all changed here\n",
		"limits counters shop": "\nshop (all users) 9/60s,name=all ",
	} {
		stdout, stderr, _ := run(t, "", append(strings.Fields(args), flags...)...)
		if !strings.Contains(table(stdout), want) {
			t.Errorf("%s: it does not say %q: %s%s", args, want, stdout, stderr)
		}
	}
}
