package accesslog_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/accesslog"
)

// flood sheds n requests.
func flood(t *testing.T, s *accesslog.ShedLog, n int) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/token", http.NoBody)
	for range n {
		s.Write(&accesslog.Line{
			Route: "/token", Status: 503, Started: time.Now(), Grant: "client_credentials", ClientID: "shop",
			Error: "temporarily_unavailable", Busy: true, Shed: "processor",
		}, r)
	}
}

// Ten requests per second are logged. The others are counted, and the count is logged once a
// second, also after the last request.
func TestShedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log check.Buffer
		s := accesslog.NewShedLog(slog.New(slog.NewTextHandler(&log, nil)))
		counts := func() (lines, summaries int) {
			synctest.Wait()
			return strings.Count(log.String(), "msg=request "), strings.Count(log.String(), `msg="requests refused while overloaded"`)
		}
		expect := func(when string, wantLines, wantSummaries int) {
			t.Helper()
			lines, summaries := counts()
			check.Equal(t, "lines "+when, lines, wantLines)
			check.Equal(t, "summaries "+when, summaries, wantSummaries)
		}
		flood(t, s, 10)
		time.Sleep(1500 * time.Millisecond) //nolint:forbidigo // simulated
		expect("of as many as are written", 10, 0)
		flood(t, s, 500)
		time.Sleep(900 * time.Millisecond) //nolint:forbidigo // simulated
		flood(t, s, 500)
		expect("within the second", 20, 0)
		time.Sleep(time.Second) //nolint:forbidigo // simulated
		expect("after it", 20, 1)
		check.Equal(t, "summary", strings.Contains(log.String(), "count=1000 skipped=990\n"), true)
		for range 5 {
			flood(t, s, 11)
			time.Sleep(1001 * time.Millisecond) //nolint:forbidigo // simulated
		}
		expect("of five seconds", 70, 6)
		time.Sleep(time.Hour) //nolint:forbidigo // simulated
		expect("of an hour of rest", 70, 6)
		line, _, _ := strings.Cut(log.String(), "\n")
		check.Equal(t, "line", strings.HasSuffix(line, " client_id=shop error=temporarily_unavailable shed=processor"), true)
		check.Equal(t, "level", strings.Contains(line, "level=INFO"), true)
	})
}

// At a higher level nothing is logged, and no second starts.
func TestShedLogAtWarn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log check.Buffer
		s := accesslog.NewShedLog(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
		flood(t, s, 100)
		time.Sleep(2 * time.Second) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "log", log.String(), "")
	})
}

// Many goroutines shed requests at once.
func TestShedLogAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log check.Buffer
		s := accesslog.NewShedLog(slog.New(slog.NewTextHandler(&log, nil)))
		for range 20 {
			go flood(t, s, 50)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "lines", strings.Count(log.String(), "msg=request "), 10)
		check.Equal(t, "summary", strings.Contains(log.String(), "count=1000 skipped=990\n"), true)
	})
}
