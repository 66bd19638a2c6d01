package main

// section is a command line whose output the page has.
type section struct{ name, args string }

const (
	loads      = "0.5x,0.6x,0.65x,0.7x,0.75x,0.8x,0.85x,0.9x,0.95x,1x,1.05x,1.1x,1.2x,1.3x,1.5x,2x"
	behaviours = "ignore,hammer,retry-after,retry-after-jitter,backoff,x-oauth2,authlib,openid-client,considerate"
	algorithms = "simulate algorithms "
)

var sections = []section{
	{"edge", algorithms + "--traffic edge"},
	{"poisson", algorithms + "--traffic poisson"},
	{"load", algorithms + "--traffic poisson --algorithm sliding,sliding-2 --rate " + loads},
	{"load-1000", algorithms + "--traffic poisson --algorithm sliding,sliding-2 --limit 1000/60s --duration 4h --rate " + loads},
	{"lognormal", algorithms + "--traffic lognormal"},
	{"pareto", algorithms + "--traffic pareto"},
	{"zipf", algorithms + "--traffic zipf"},
	{"attack", algorithms + "--traffic attack"},
	{"mix", algorithms + "--traffic mix --limit 600/60s --algorithm fixed,sliding,sliding-2"},
	{"mix-rates", algorithms + "--traffic mix --limit 600/60s --number 1000 --algorithm sliding --rate 0.02x,0.04x,0.06x,0.08x,0.1x,0.15x"},
	{"wander", algorithms + "--traffic wander --algorithm exact,fixed,sliding,sliding-4"},
	{"spikes", algorithms + "--traffic spikes --limit 20/60s --number 100 --duration 2h --per 10s --algorithm unlimited,sliding --clients " + behaviours},
	{"spikes-algorithms", algorithms + "--traffic spikes --limit 20/60s --number 100 --duration 2h --per 10s"},
}
