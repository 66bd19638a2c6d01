package main

import (
	"fmt"
	"strings"

	"oauth-server/lab/page"
)

// rows returns the rows of the table.
func rows() (all []row) {
	all = append(all, decisions()...)
	all = append(all, memory()...)
	all = append(all, highRate()...)
	all = append(all, tokens()...)
	all = append(all, abuse()...)
	all = append(all, stores()...)
	return append(all, database()...)
}

// named returns a benchmark for each label, with the name that the format makes of it.
func named(format string, labels ...string) (all []other) {
	for _, label := range labels {
		all = append(all, other{label: label, name: fmt.Sprintf(format, label)})
	}
	return all
}

// references are named ones that ours does not compete with.
func references(format string, labels ...string) []other {
	all := named(format, labels...)
	for i := range all {
		all[i].reference = true
	}
	return all
}

// libraries are other limiters, and maps below them.
func libraries(format string) []other {
	return append(named(format, "go-limiter", "throttled", "ulule", "x-time-rate"), references(format, "otter", "xsync")...)
}

func decisions() (all []row) {
	for _, m := range []struct {
		keys          int
		choice, about string
	}{
		{100_000, "one", "the same one of 100,000 keys"},
		{100_000, "random", "any of 100,000 keys"},
		{1_000_000, "warm", "a thousand in turn of 1,000,000 keys"},
		{1_000_000, "random", "any of 1,000,000 keys"},
	} {
		for cores, about := range []string{"1 core", "2 cores"} {
			name := fmt.Sprintf("/limiter=%%s/keys=%d/choice=%s/cores=%d", m.keys, m.choice, cores+1)
			others := libraries("Decision" + name)
			if m.keys == 100_000 { // Redis is a round trip away, however many keys it has
				others = append(others, named("DecisionInRedis"+name, "redis_rate")...)
			}
			all = append(all, row{
				about: "decision, " + m.about + ", " + about, unit: "ns/op", shown: "ns", ours: fmt.Sprintf("Decision"+name, "ours"), others: others,
			})
		}
	}
	format := "Decision/limiter=%s/keys=1000000/choice=random/cores=1"
	for _, unit := range []string{"B/op", "allocs/op"} {
		all = append(all, row{
			about: "allocated by a decision", unit: unit, shown: map[string]string{"B/op": "B", "allocs/op": "objects"}[unit],
			ours: fmt.Sprintf(format, "ours"), others: libraries(format),
		})
	}
	return all
}

func memory() (all []row) {
	format := "Memory/limiter=%s"
	for _, m := range [][3]string{
		{"memory of a key, of a million", "B/key", "B"},
		{"longest pause of a garbage collection, a million keys", "gc-pause-µs", "µs"},
		{"processor time of a garbage collection, a million keys", "gc-ms", "ms"},
	} {
		all = append(all, row{about: m[0], unit: m[1], shown: m[2], ours: fmt.Sprintf(format, "ours"), others: libraries(format)})
	}
	return all
}

func highRate() (all []row) {
	for _, limit := range []int{10, 100, 10_000} {
		format := fmt.Sprintf("Rate/limit=%d/store=%%s", limit)
		for _, unit := range []string{"s/M", "client-s/M", "store-s/M"} {
			all = append(all, row{
				about: fmt.Sprintf("a million shared decisions, %s requests a window", page.Number(float64(limit))) +
					map[string]string{"client-s/M": ", the server alone", "store-s/M": ", the store alone"}[unit],
				unit: unit, shown: "processor s", ours: fmt.Sprintf(format, "ours"),
				others: append(named(format, "sorted-set", "two-counters"), references(format, "ours-on-file")...),
			})
		}
	}
	return all
}

func tokens() (all []row) {
	format := "Token/server=%s"
	others := append(named(format, "fosite", "go-oauth2"), references(format, "bare", "ours-limiter-off", "ours-with-log")...)
	beside := func(about, unit, target string) row {
		return row{about: about + ", beside the bare handler (target " + target + " ×)", unit: unit, shown: "µs", ours: fmt.Sprintf(format, "ours"), others: named(format, "bare")}
	}
	for _, m := range []struct {
		about, unit, shown string
		more               bool
	}{
		{"token requests, one core", "req/s", "per second", true},
		{"a token request", "cpu-µs/req", "processor µs", false},
		{"allocated by a token request", "objects/req", "objects", false},
		{"allocated by a token request", "bytes/req", "B", false},
		{"token request at half that rate, p50", "p50-µs", "µs", false},
		{"token request at half that rate, p99", "p99-µs", "µs", false},
		{"token request at half that rate, p99.9", "p999-µs", "µs", false},
	} {
		all = append(all, row{about: m.about, unit: m.unit, shown: m.shown, more: m.more, ours: fmt.Sprintf(format, "ours"), others: others})
	}
	all = append(all, beside("processor time of a token request", "cpu-µs/req", "1.1"), beside("token request at half that rate, p99", "p99-µs", "3"))
	return append(all, row{about: "the limiter's share of a token request (target 2)", unit: "limiter-%", shown: "% processor time", ours: "TokenLimiter"})
}

func abuse() (all []row) {
	for _, attack := range []string{"none", "over-limit", "wrong-secrets", "sign-ins"} {
		format := "Abuse/attack=" + attack + "/limits=%s"
		without := []other{{label: "without limits", name: fmt.Sprintf(format, "off")}}
		about := map[string]string{
			"none": "good clients alone", "over-limit": "good clients beside one at 50 times its limit",
			"wrong-secrets": "good clients in a flood of wrong secrets", "sign-ins": "good clients in a flood of sign-ins",
		}[attack]
		all = append(all,
			row{about: about + ", answered within 100 ms", unit: "good-%", shown: "%", more: true, ours: fmt.Sprintf(format, "on"), others: without},
			row{about: about + ", p99", unit: "good-p99-µs", shown: "µs", ours: fmt.Sprintf(format, "on"), others: without})
	}
	return all
}

func stores() (all []row) {
	for _, grant := range []string{"Refresh", "Code"} {
		all = append(all, row{
			about: map[string]string{"Refresh": "refreshes", "Code": "codes"}[grant] + " on the embedded store, 64 connections (target 8 ×)",
			unit:  "tokens/s", shown: "per second", more: true, ours: "Token" + grant + "/clients=64",
			others: []other{
				{label: "1 connection", name: "Token" + grant + "/clients=1"},
				{label: "64 that need no store", name: "TokenClientCredentials/clients=64", reference: true},
			},
		})
	}
	return all
}

func database() (all []row) {
	for _, mix := range []string{
		"10-instances,1-users,1000-per-20s,500-offered-per-s", "3-instances,1-users,1000-per-1s,2000-offered-per-s",
		"2-instances,1-users,500-per-1s,800-offered-per-s", "16-instances,1-users,1000-per-10s,300-offered-per-s",
		"10-instances,10-users,10-per-20s,30-offered-per-s", "3-instances,2000-users,100-per-20s,400-offered-per-s",
	} {
		format := "Database/mix=" + mix + "/sharing=%s"
		add := func(about, unit, shown string) {
			all = append(all, row{
				about: about + strings.ReplaceAll(mix, ",", ", "), unit: unit, shown: shown,
				ours: fmt.Sprintf(format, "ours"), others: named(format, "every-second", "increment"),
			})
		}
		all = append(all, row{
			about: "database, admitted over the limit: " + strings.ReplaceAll(mix, ",", ", "), unit: "over-%", shown: "%",
			ours: fmt.Sprintf(format, "ours"), others: append(named(format, "every-second"), references(format, "increment")...),
		})
		for _, unit := range []string{"updates", "commands", "bytes"} {
			add("database, for an admitted request: ", unit+"/admitted", unit)
		}
	}
	return all
}
