package main

import (
	"encoding/json"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// clustered runs the command with -o json.
func clustered(t *testing.T, args ...string) []clusterRun {
	t.Helper()
	stdout, stderr, status := run(t, "", append([]string{"simulate", "cluster", "-o", "json"}, args...)...)
	check.Equal(t, stderr, status, exitOK)
	var answer struct{ Runs []clusterRun }
	check.OK(t, json.Unmarshal([]byte(stdout), &answer))
	return answer.Runs
}

func TestSimulateClusterAsJSON(t *testing.T) {
	t.Parallel()
	runs := clustered(t, "--instances", "1,4", "--flush", "1s,plain:2s", "--limit", "120/60s,frames=2", "--duration", "4m", "--keys", "2", "--seed", "5")
	check.Equal(t, "runs", len(runs), 4)
	for i, want := range []struct {
		instances int
		flush     string
	}{{1, "1s"}, {1, "plain:2s"}, {4, "1s"}, {4, "plain:2s"}} {
		r := runs[i]
		check.Equal(t, "flush", r.Flush, want.flush)
		check.Equal(t, "instances", []int{r.Instances, len(r.PerInstance)}, []int{want.instances, want.instances})
		check.Equal(t, "about twice 120 a minute of two users for four minutes", r.Requests > 1700 && r.Requests < 2150, true)
		check.Equal(t, "keys and points", []int{r.Keys, len(r.Points)}, []int{2, 0})
	}
	check.Equal(t, "alone", runs[0].Over.Estimate, 1)
	check.Equal(t, "a plain interval is less exact", runs[3].Windows.Mean > runs[2].Windows.Mean+0.005, true)

	with := []string{"--instances", "3", "--duration", "3m", "--rate", "20/s", "--loss", "5%", "--jitter", "3ms", "--skew", "3s", "--down", "30s+20s,1m+5s", "--step", "2@1m:-1h", "--balance", "skewed", "--series"}
	first, again := clustered(t, with...), clustered(t, with...)
	check.Equal(t, "the same again", again, first)
	check.Equal(t, "about 20 a second", first[0].Requests > 3300 && first[0].Requests < 3900, true)
	check.Equal(t, "the first instance has most", first[0].PerInstance[0].Requests > 2*first[0].PerInstance[1].Requests, true)
	check.Equal(t, "faults", first[0].Cost.Unknown > 0, true)
	quiet, lively := first[0].Points[22].Cost, first[0].Points[10].Cost // at 34 s and at 16 s
	check.Equal(t, "few commands to a database that does not answer", quiet.Commands < lively.Commands/2, true)
}

func TestSimulateClusterAsATable(t *testing.T) {
	t.Parallel()
	stdout, stderr, status := run(t, "", "simulate", "cluster", "--instances", "2", "--rate", "0.1x", "--duration", "2m")
	check.Equal(t, stderr, status, exitOK)
	lines := strings.Split(stdout, "\n")
	check.Equal(t, stdout, strings.HasPrefix(lines[0], "INSTANCES  FLUSH  REQUESTS") && strings.HasPrefix(lines[3], "INSTANCES  FLUSH  COMMANDS/S"), true)
	check.Equal(t, "no window with the limit offered", strings.Fields(lines[1])[4:7], []string{"-", "-", "-"})
}

func TestSimulateClusterRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--limit 0/60s --loss 200% --flush x --step 9@1:2 --down 5m --rate 3 --keys 0 --zipf 1": {
			`--limit.requests: 0 is not`, `--loss: "200%" is not a share`, `--flush: "x" is not`, `--step: "9@1:2" is not`,
			`--down: "5m" is not FROM+FOR`, `--rate: "3" is not a multiple`, `--keys: 0 is not from 1`, `--zipf: 1 is not above 1`,
		},
		"--instances 3,0 --balance fair --duration 0s --flush plain:1ms --step 4@1m:1s --limit 5/60s,strict": {
			"--instances: 0 is not", `--balance: "fair" is not`, "--duration: 0s is not", "--flush: 1ms is less", "--step: there is no instance 4",
			"--limit: strict limits are not simulated",
		},
		"--clients hammer":                         {"--clients: independent users ignore the answers"},
		"--traffic mix --rate 5/s --zipf 2":        {"--traffic: of mix only a sample", "--rate: with --traffic it is a multiple", "--zipf: it is not of --traffic"},
		"--traffic x --clients y --keys 2000000":   {`--traffic: there is no kind "x"; there are`, `--clients: there is no behaviour "y"`},
		"--zipf NaN --keys 2000000000 --loss NaN%": {"--zipf: NaN is not", "--keys: 2000000000 is not", `--loss: "NaN%" is not a share`},
		"--jitter -1s --skew -1s --step 1@99h:+1h": {"--jitter: it is less than 0", "--skew: it is less than 0", "--step: 99h0m0s is not in the"},
		"--zipf Inf":                      {"--zipf: +Inf is not"},
		"--duration 99999h":               {"--duration: 99999h0m0s is not"},
		"--traffic attack --keys 2000000": {"--keys: 2000000 is not between 1 and 1000000"},
		"--traffic attack --keys 0":       {"--keys: 0 is less than 1"},
	} {
		_, stderr, status := run(t, "", append([]string{"simulate", "cluster"}, strings.Fields(args)...)...)
		check.Equal(t, "status", status, exitUsage)
		for _, text := range want {
			check.Equal(t, text+" in\n"+stderr, strings.Contains(stderr, text), true)
		}
		check.Equal(t, "lines of\n"+stderr, strings.Count(stderr, "\n"), len(want))
	}
}

// TestSimulateClusterTraffic: the traffic is that of simulate algorithms, and clients get the cluster's answers.
func TestSimulateClusterTraffic(t *testing.T) {
	t.Parallel()
	with := []string{"--instances", "2", "--traffic", "attack", "--keys", "3", "--limit", "5/60s", "--duration", "6m", "--balance", "sticky"}
	ignoring, again := clustered(t, with...), clustered(t, with...)
	check.Equal(t, "the same again", again, ignoring)
	check.Equal(t, "keys with the attacker", ignoring[0].Keys, 4)
	retrying := clustered(t, append(with, "--clients", "retry-after")...)
	check.Equal(t, "requests are sent again", retrying[0].Requests > ignoring[0].Requests, true)
	check.Equal(t, "and admitted later", retrying[0].Admitted > ignoring[0].Admitted, true)
	for _, i := range ignoring[0].PerInstance {
		check.Equal(t, "clients are spread", i.Requests > 0, true)
	}
	usual := clustered(t, "--traffic", "attack", "--duration", "1m", "--limit", "20/60s")
	check.Equal(t, "as many clients as are usual", usual[0].Keys > 40, true)
}
