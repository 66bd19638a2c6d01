package e2e

import (
	"math"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/overload/proctime"
)

// BenchmarkTokenLimiter is what the limiter costs of the processor time of a token
// request. Two clients of one server ask by turns; for one of them the limiter is off, and
// the limit of the other is never reached. A second server has it the other way round, as
// clients and processes differ by a few per cent. A round has 20 turns of everything; the
// figure is the median of the rounds, and error-% the standard error of their mean. On
// one core:
//
//	taskset -c 0 go test -run '^$' -bench TokenLimiter -benchtime 40x ./internal/e2e
func BenchmarkTokenLimiter(b *testing.B) {
	clients := [2]string{"shop", "other"}
	var servers [2]*server
	var conns [2]*connection
	for i, off := range clients {
		servers[i] = start(b, quiet+`
rate_limit:
  default: { client: [ { name: l, requests: 1000000000, window: 60s } ] }
  clients: { `+off+`: { mode: "off" } }
`)
		conns[i] = servers[i].connect(0)
	}
	const requests, turns = 50, 20
	spent := func() (off, on time.Duration) {
		for i := range 4 * turns {
			server, client := i/2%2, (i+i/4)%2
			before := servers[server].processorTime()
			for range requests {
				conns[server].token(clients[client], "grant_type=client_credentials")
			}
			if took := servers[server].processorTime() - before; client == server {
				off += took
			} else {
				on += took
			}
		}
		return off, on
	}
	spent() // warm
	var costs, without []float64
	for b.Loop() {
		off, on := spent()
		costs = append(costs, 100*(float64(on)/float64(off)-1))
		without = append(without, float64(off.Nanoseconds())/1000/(2*turns*requests))
	}
	mean, squares := 0.0, 0.0
	for _, cost := range costs {
		mean += cost / float64(len(costs))
	}
	for _, cost := range costs {
		squares += (cost - mean) * (cost - mean)
	}
	b.ReportMetric(median(costs), "limiter-%")
	b.ReportMetric(mean, "mean-%")
	b.ReportMetric(math.Sqrt(squares)/float64(max(len(costs)-1, 1)), "error-%")
	b.ReportMetric(median(without), "off-µs/request")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// processorTime is what all threads of the process have used.
func (s *server) processorTime() time.Duration {
	s.tb.Helper()
	used, err := proctime.Of(s.cmd.Process.Pid)
	check.OK(s.tb, err, "this benchmark needs Linux")
	return used.Ran
}
