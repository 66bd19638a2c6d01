package cli

import "testing"

// TestCandidateOverItsLimits: what becomes of requests over the limits that are tried is tried as the flags say.
func TestCandidateOverItsLimits(t *testing.T) {
	t.Parallel()
	s := newLimitsServer(t)
	s.limits(0, "candidate set shop --limit 5/60s --over-limit deny --max-wait 2s --max-waiting 4 --ban denials=7")
	stdout, _ := s.limits(0, "get shop --candidate")
	has(t, table(stdout), "over the limit deny\n", "max wait 2s, 4 at once\n", "ban denials=7,")
	s.write("policies:\n  shop: {client: [{requests: 9}], over_limit: deny}\n")
	s.limits(0, "candidate set shop --file FILE --over-limit reuse")
	stdout, _ = s.limits(0, "get shop --candidate")
	has(t, table(stdout), "client limits 9/60s\n", "over the limit reuse\n")
	for _, args := range []string{"--over-limit wait", "--max-wait soon", "--ban denials=x"} {
		s.limits(2, "candidate set shop --limit 5/60s "+args)
	}
}
