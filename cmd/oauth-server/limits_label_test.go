package main

import (
	"testing"

	"oauth-server/internal/check"
)

// TestLimitsByLabel: the policies of all clients with a label are changed in one change, each on top of what
// it has.
func TestLimitsByLabel(t *testing.T) {
	s := newLimitsServer(t)
	for _, id := range []string{"shop", "batch"} {
		runOK(t, "", "client", "update", id, "--label", "team=payments", "--data", s.data)
	}
	s.limits(0, "set shop --client 7/60s --note own --yes")
	s.limits(0, "tier set gold --user 20/60s --yes")
	before := s.version()
	stdout, _ := s.limits(0, "set --label team=payments --label team --tier gold --yes")
	has(t, stdout, "policies of 2 clients", "batch", "shop")
	check.Equal(t, "changes", s.version()-before, 1)
	for id, parts := range map[string][]string{"shop": {"20/60s", "7/60s", "own", "tier gold"}, "batch": {"20/60s", "tier gold"}} {
		stdout, _ = s.limits(0, "get "+id)
		has(t, stdout, parts...)
	}
	s.limits(0, "unset --label team=payments --field tier --yes")
	stdout, _ = s.limits(0, "get shop")
	has(t, stdout, "7/60s", "own")
	check.Equal(t, "changes", s.version()-before, 2)
	for args, says := range map[string]string{
		"set --label team=nobody --tier gold":             "no client has team=nobody",
		"set --label =x --tier gold":                      "--label",
		"set shop --label team --tier gold":               "contradicts",
		"set shop --label team --for-user a --user 1/60s": "--label is about the client",
		"unset --label team":                              "needs --field",
		"set --tier gold":                                 "needs a CLIENT, or --label",
	} {
		_, stderr := s.limits(2, args)
		has(t, stderr, says)
	}
	_, stderr := s.limits(1, "set --label team --tier silver --yes")
	has(t, stderr, `there is no tier "silver"`)
	check.Equal(t, "changes after those that were refused", s.version()-before, 2)
}
