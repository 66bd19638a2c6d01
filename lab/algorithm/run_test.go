package algorithm_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/algorithm"
)

// list is traffic of one client, at times in milliseconds.
type list struct {
	times   []int64
	answers []traffic.Answer
	next    int
}

func (l *list) Next(r *traffic.Request) bool {
	if l.next >= len(l.times) {
		return false
	}
	*r = traffic.Request{At: time.UnixMilli(l.times[l.next]), Client: "shop"}
	l.next++
	return true
}

func (l *list) Answer(_ *traffic.Request, a traffic.Answer) { l.answers = append(l.answers, a) }
func (l *list) Err() error                                  { return nil }

// times returns n times that begin at from, every milliseconds apart.
func times(from, every int64, n int) (out []int64) {
	for i := range int64(n) {
		out = append(out, from+i*every)
	}
	return out
}

func result(t rapid.TB, src traffic.Source, name string, o algorithm.Options) algorithm.Result {
	t.Helper()
	r, err := algorithm.Run(src, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var perMinute = algorithm.Options{Limit: algorithm.Limit{Requests: 100, Window: time.Minute}}

// TestFalseAdmits: a hundred requests at the end of a minute and a hundred at the beginning of the next are two limits in a
// tenth of a second, of which a fixed window sees nothing.
func TestFalseAdmits(t *testing.T) {
	t.Parallel()
	at := append(times(59_900, 1, 100), times(60_000, 1, 100)...)
	r := result(t, &list{times: at}, algorithm.Fixed, perMinute)
	check.Equal(t, "admitted", r.Admitted, 200)
	check.Equal(t, "false admits", r.FalseAdmits, 100)
	check.Equal(t, "of them by more than 15", r.Far, 85)
	check.Equal(t, "false denials", r.FalseDenials, 0)
	check.Equal(t, "worst window", r.WorstWindow, 200)
	check.Equal(t, "wrongly allowed", r.Counted.WronglyAllowed, 100)
	check.Equal(t, "a spike", r.Spike, algorithm.Spike{Requests: 100, Tokens: 100})

	r = result(t, &list{times: at}, algorithm.Exact, perMinute)
	check.Equal(t, "exact", []int64{r.Admitted, r.FalseAdmits, r.FalseDenials, r.WorstWindow}, []int64{100, 0, 0, 100})
	check.Equal(t, "exact is not compared with itself", r.Counted == nil, true)
}

// TestFalseDenials: of a hundred requests at the beginning of a minute, sliding believes half a minute after its end that
// half are still inside the window.
func TestFalseDenials(t *testing.T) {
	t.Parallel()
	at := append(times(60_000, 0, 100), times(150_000, 0, 80)...)
	r := result(t, &list{times: at}, algorithm.Sliding, perMinute)
	check.Equal(t, "denied", r.Denied, 30)
	check.Equal(t, "false denials", r.FalseDenials, 30)
	check.Equal(t, "of them by more than 15", r.Far, 30)
	check.Equal(t, "wrong", r.WrongRatio(), 30.0/180)
	check.Equal(t, "wrongly limited", r.Counted.WronglyLimited, 30)
	check.Equal(t, "largest error", r.Counted.LargestError, 50.0)
}

// TestJudgement compares with a log that is searched from its beginning each time.
func TestJudgement(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t)
		window := l.Window.Milliseconds()
		at := drawTimes(t, l.Window)
		for _, name := range algorithm.Names() {
			src := &list{times: at}
			got := result(t, src, name, algorithm.Options{Limit: l})
			var admitted []int64
			var want algorithm.Result
			for i, a := range src.answers {
				served := at[i] + a.Wait.Milliseconds()
				switch {
				case a.Refused() && within(admitted, at[i]-window, served+window*100) < l.Requests:
					want.FalseDenials++
				case a.Refused():
				default:
					admitted = append(admitted, served)
					n := within(admitted, served-window, served)
					want.WorstWindow = max(want.WorstWindow, n)
					if n > l.Requests {
						want.FalseAdmits++
					}
				}
			}
			if got.FalseAdmits != want.FalseAdmits || got.FalseDenials != want.FalseDenials || got.WorstWindow != want.WorstWindow {
				t.Fatalf("%s: false admits %d, false denials %d, worst window %d; want %d, %d, %d", name,
					got.FalseAdmits, got.FalseDenials, got.WorstWindow, want.FalseAdmits, want.FalseDenials, want.WorstWindow)
			}
		}
	})
}

// TestSeries: the tokens of a queue are in the intervals in which they are issued.
func TestSeries(t *testing.T) {
	t.Parallel()
	o := algorithm.Options{Limit: algorithm.Limit{Requests: 3, Window: 3 * time.Second}, Series: true}
	r := result(t, &list{times: []int64{5100, 5100, 5100, 5100, 7900}}, algorithm.LeakyQueue, o)
	check.Equal(t, "series", r.Series, &algorithm.Series{Seconds: 1, Requests: []int64{4, 0, 1, 0}, Tokens: []int64{1, 1, 1, 1}})
	check.Equal(t, "longest wait", r.LongestWait, 2.0)
	check.Equal(t, "spike", r.Spike, algorithm.Spike{Requests: 4, Tokens: 1})

	r = result(t, &list{times: []int64{60_000, 60_000, 91_000, 122_000}}, algorithm.Sliding, algorithm.Options{
		Limit: algorithm.Limit{Requests: 10, Window: time.Minute}, Per: 30 * time.Second, Series: true,
	})
	check.Equal(t, "counts at the ends", r.Series.Exact, []int64{2, 3})
	check.Equal(t, "estimates", r.Series.Estimate, []float64{2, 3})
}
