package metrics_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/observe/metrics"
)

func BenchmarkDecision(b *testing.B) {
	m, _ := newMetrics(b, metrics.Options{MaxClients: 200})
	for i := range 200 {
		m.Decision("client"+strconv.Itoa(i), "client_credentials", metrics.Allowed)
	}
	for _, id := range []string{"client7", "stranger"} {
		b.Run(id, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Decision(id, "client_credentials", metrics.Allowed)
			}
		})
	}
}

func BenchmarkUsage(b *testing.B) {
	m, _ := newMetrics(b, metrics.Options{MaxClients: 200})
	for b.Loop() {
		m.Usage("shop", 0.5)
	}
}

func BenchmarkRequest(b *testing.B) {
	m, _ := newMetrics(b, metrics.Options{})
	b.ReportAllocs()
	for b.Loop() {
		m.Request(metrics.Request{Route: "/token", Method: "POST", Code: 200, Duration: time.Millisecond})
	}
}

func BenchmarkGatewayRequest(b *testing.B) {
	m, _ := newMetrics(b, metrics.Options{})
	b.ReportAllocs()
	for b.Loop() {
		m.GatewayExchanged(true, 200, "", time.Millisecond)
		m.GatewayAnswered("issued", 2*time.Millisecond)
	}
}

// A scrape of an instance with 200 clients that use two grants each, and with this many policies.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{2, 10_000} {
		b.Run("policies="+strconv.Itoa(n), func(b *testing.B) {
			m, reg := newMetrics(b, metrics.Options{MaxClients: 200})
			exercise(m)
			if n > 2 {
				m.WatchPolicies(manyPolicies(n))
			}
			for i := range 200 {
				m.Decision("client"+strconv.Itoa(i), "refresh_token", metrics.Allowed)
				m.Decision("client"+strconv.Itoa(i), "authorization_code", metrics.Allowed)
			}
			b.ReportAllocs()
			page := ""
			for b.Loop() {
				page = scrape(b, reg)
			}
			b.ReportMetric(float64(strings.Count(page, "\n")-strings.Count(page, "# ")), "series")
			b.ReportMetric(float64(len(page)), "bytes/page")
		})
	}
}
