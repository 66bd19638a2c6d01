package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkTokenLimiter is what the limiter costs of the processor time of a token
// request: two clients of one server, for one of which the limiter is off, ask by
// turns, and the other's limit is never reached. Two servers would differ by a few per cent
// by where their memory happens to lie. A round has 20 turns of each; the figure is the
// median of the rounds, and error-% the standard error of their mean. On one core:
//
//	taskset -c 0 go test -run '^$' -bench TokenLimiter -benchtime 40x ./internal/e2e
func BenchmarkTokenLimiter(b *testing.B) {
	s := start(b, quiet+`
rate_limit:
  default: { client: [ { name: l, requests: 1000000000, window: 60s } ] }
  clients: { other: { mode: "off" } }
`)
	c := s.connect(0)
	turn := func(client string) time.Duration {
		before := s.processorTime()
		for range 100 {
			c.token(client, "grant_type=client_credentials")
		}
		return (s.processorTime() - before) / 100
	}
	for range 20 { // warm
		turn("other")
		turn("shop")
	}
	var costs, without []float64
	for b.Loop() {
		var off, on time.Duration
		for range 10 { // off, on, on, off
			off += turn("other")
			on += turn("shop") + turn("shop")
			off += turn("other")
		}
		costs = append(costs, 100*(float64(on)/float64(off)-1))
		without = append(without, float64(off.Nanoseconds())/1000/20)
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

// processorTime is what all threads of the process have used, by the scheduler of
// Linux.
func (s *server) processorTime() (sum time.Duration) {
	s.tb.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.cmd.Process.Pid))
	require.NoError(s.tb, err)
	require.NotEmpty(s.tb, files, "needs Linux")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		require.NoError(s.tb, err)
		sum += time.Duration(ns)
	}
	return sum
}
