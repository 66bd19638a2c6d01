package main

// section is a command line whose output the page has.
type section struct{ name, args string }

const (
	algorithms = "simulate algorithms "
	loads      = "0.6x,0.65x,0.7x,0.8x,0.85x,0.9x,0.95x,1x,1.05x,1.1x,1.2x,1.3x,1.4x"
	loadsArgs  = "--traffic poisson --algorithm sliding,sliding-2 --table estimates --rate " + loads
	mixArgs    = "--traffic mix --limit 600/60s"
	spikesArgs = "--traffic spikes --limit 20/60s --number 100 --duration 2h --per 10s"
	// what wso2 published figures of, with so many requests a second
	clustersArgs = "simulate cluster --instances 4 --limit 1000/1s,algorithm=fixed --latency 1ms --flush 1s,plain:10ms,plain:50ms,plain:100ms --duration 1m --rate "
	behaviours   = "ignore,hammer,retry-after,retry-after-jitter,backoff,x-oauth2,authlib,openid-client,considerate"
)

var sections = []section{
	{"edge", algorithms + "--traffic edge --table decisions"},
	{"poisson", algorithms + "--traffic poisson --table decisions,estimates"},
	{"load", algorithms + loadsArgs},
	{"load-1000", algorithms + loadsArgs + " --limit 1000/60s --duration 4h"},
	{"lognormal", algorithms + "--traffic lognormal --table decisions"},
	{"pareto", algorithms + "--traffic pareto --table decisions"},
	{"zipf", algorithms + "--traffic zipf --table decisions"},
	{"attack", algorithms + "--traffic attack --table decisions,flow"},
	{"mix", algorithms + mixArgs + " --algorithm sliding,sliding-2 --table estimates --seed 1,2,3,4"},
	{"mix-rates", algorithms + mixArgs + " --algorithm sliding --table estimates --rate 0.01x,0.03x,0.04x"},
	{"wander", algorithms + "--traffic wander --algorithm exact,fixed,sliding,sliding-4 --table decisions,estimates"},
	{"spikes", algorithms + spikesArgs + " --table flow"},
	{"clients", algorithms + spikesArgs + " --table flow --algorithm unlimited,sliding --clients " + behaviours},
	{"cluster-2x", clustersArgs + "2000/s"},
	{"cluster-4x", clustersArgs + "4000/s"},
}
