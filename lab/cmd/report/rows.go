package main

import (
	"fmt"
	"slices"
	"strings"
)

// libraries are other limiters.
var libraries = []string{"go-limiter", "throttled", "ulule", "x-time-rate"}

// rows returns the rows of the table.
func rows() []row {
	return slices.Concat(decisions(), tokens(), gateway(), abuse(), database())
}

func decisions() (all []row) {
	for _, m := range []struct{ keys, about string }{
		{"100000/choice=one", "the same one of 100,000 keys"},
		{"1000000/choice=warm", "a thousand in turn of a million keys"},
		{"1000000/choice=random", "any of a million keys"},
	} {
		for cores, about := range []string{"1 core", "2 cores"} {
			format, others := fmt.Sprintf("Decision/limiter=%%s/keys=%s/cores=%d", m.keys, cores+1), libraries
			if strings.HasSuffix(m.keys, "one") {
				others = append(slices.Clip(others), "redis_rate=DecisionInRedis"+strings.TrimPrefix(fmt.Sprintf(format, "redis_rate"), "Decision"))
			}
			all = append(all, row{about: "decision, " + m.about + ", " + about, unit: "ns/op", shown: "ns", format: format, others: others})
		}
	}
	all = append(all, row{
		about: "allocated by a decision", unit: "B/op", shown: "B", format: "Decision/limiter=%s/keys=1000000/choice=random/cores=1", others: libraries,
	})
	for _, m := range [][3]string{
		{"memory of a key, of a million", "B/key", "B"},
		{"longest pause of a garbage collection, a million keys", "gc-pause-µs", "µs"},
		{"processor time of a garbage collection, a million keys", "gc-ms", "ms"},
	} {
		all = append(all, row{about: m[0], unit: m[1], shown: m[2], format: "Memory/limiter=%s", others: libraries})
	}
	return all
}

func tokens() (all []row) {
	const format, half = "Token/server=%s", "token request at half that rate, "
	const withLog = "Token/server=ours-with-log"
	others := []string{"fosite", "go-oauth2", "(bare)", "(ours without access log)=Token/server=ours", "(… and without limits)=Token/server=ours-limiter-off"}
	bare := []string{"bare"}
	all = []row{
		{about: "token requests, one core", unit: "req/s", shown: "per second", more: true, ours: withLog, format: format, others: others},
		{about: "a token request", unit: "cpu-µs/req", shown: "processor µs", ours: withLog, format: format, others: others},
		{about: "allocated by a token request", unit: "objects/req", shown: "objects", ours: withLog, format: format, others: others},
		{about: "allocated by a token request", unit: "bytes/req", shown: "B", ours: withLog, format: format, others: others},
		{about: half + "p50", unit: "p50-µs", shown: "µs", ours: withLog, format: format, others: others},
		{about: half + "p99", unit: "p99-µs", shown: "µs", ours: withLog, format: format, others: others},
		{about: half + "p99.9", unit: "p999-µs", shown: "µs", ours: withLog, format: format, others: others},
		{about: "processor time of a token request, beside the bare handler (target 1.12 ×)", unit: "cpu-µs/req", shown: "µs", ours: withLog, format: format, others: bare},
		{about: half + "p99, beside the bare handler (target 3 ×)", unit: "p99-µs", shown: "µs", ours: withLog, format: format, others: bare},
		{about: "a token request, two cores shared with the load, beside the bare handler (target 1.25 ×)", unit: "cpu-µs/req", shown: "processor µs", ours: "Shared/server=ours-with-log", format: "Shared/server=%s", others: bare},
		{about: "a token request, two cores shared with the load", unit: "cpu-µs/req", shown: "processor µs", ours: "Shared/server=ours-with-log", format: "Shared/server=%s", others: []string{"fosite", "go-oauth2"}},
		{about: "refused with 503, 128 connections, two shared cores (target 0)", unit: "refused-%", shown: "%", ours: "Shared/server=ours-with-log"},
		{about: "the limiter's share of a token request (target 2)", unit: "limiter-%", shown: "% processor time", ours: "TokenLimiter"},
	}
	for _, grant := range [][2]string{{"Refresh", "refreshes"}, {"Code", "codes"}} {
		name := "Token" + grant[0] + "/clients="
		all = append(all, row{
			about: grant[1] + " on the embedded store, 64 connections (target 8 ×)", unit: "tokens/s", shown: "per second", more: true, ours: name + "64",
			others: []string{"1 connection=" + name + "1", "(64 that need no store)=TokenClientCredentials/clients=64"},
		})
	}
	return all
}

// gateway shows the upstream without a gateway for reference. It shares its processor with the gateway.
func gateway() (all []row) {
	const name = "Gateway/asked="
	for _, m := range []row{
		{about: "requests through the gateway, one core", unit: "req/s", shown: "per second", more: true},
		{about: "a request through the gateway", unit: "cpu-µs/req", shown: "processor µs"},
		{about: "2,000 requests per second through the gateway, p50", unit: "p50-µs", shown: "µs"},
		{about: "2,000 requests per second through the gateway, p99", unit: "p99-µs", shown: "µs"},
	} {
		m.ours, m.others = name+"gateway", []string{
			"httputil.ReverseProxy=" + name + "reverse-proxy", "nginx with limit_req=" + name + "nginx",
			"(direct)=" + name + "direct", "(denied)=" + name + "gateway-denies",
		}
		all = append(all, m)
	}
	return all
}

func abuse() (all []row) {
	for _, attack := range [][2]string{
		{"none", "good clients alone"},
		{"over-limit", "good clients beside one at 50 times its limit"},
		{"wrong-secrets", "good clients in a flood of wrong secrets"},
		{"sign-ins", "good clients in a flood of sign-ins"},
	} {
		format := "Abuse/attack=" + attack[0] + "/limits="
		others := []string{"without limits=" + format + "off"}
		all = append(all,
			row{about: attack[1] + ", answered within 100 ms", unit: "good-%", shown: "%", more: true, ours: format + "on", others: others},
			row{about: attack[1] + ", p99", unit: "good-p99-µs", shown: "µs", ours: format + "on", others: others})
	}
	return all
}

func database() (all []row) {
	const cold = "ColdStart/connections="
	all = append(all,
		row{
			about: "cold start of three instances, 200 used up: admitted, 16 connections each (target 10)", unit: "over", shown: "requests", ours: cold + "16",
			others: []string{"(1 connection each)=" + cold + "1", "(2)=" + cold + "2"},
		},
		row{about: "clean stop with 2,000 unwritten counters (target 5)", unit: "s/stop", shown: "s", ours: "Stop"})
	for _, mix := range []string{
		"10-instances,1-users,1000-per-20s,500-offered-per-s", "10-instances,10-users,10-per-20s,30-offered-per-s",
		"3-instances,2000-users,100-per-20s,400-offered-per-s",
	} {
		format, about := "Database/mix="+mix+"/sharing=%s", strings.ReplaceAll(mix, ",", ", ")
		all = append(all,
			row{about: "database, admitted over the limit: " + about, unit: "over-%", shown: "%", format: format, others: []string{"every-second", "(increment)"}},
			row{about: "database, updates for an admitted request: " + about, unit: "updates/admitted", shown: "updates", format: format, others: []string{"every-second", "increment"}},
			row{about: "database, commands for an admitted request: " + about, unit: "commands/admitted", shown: "commands", format: format, others: []string{"every-second", "increment"}})
	}
	return all
}
