package simulate

import (
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
)

// TestSpill: the requests read are the requests added, to the microsecond. This also holds with
// more requests than numbers, and before 1970.
func TestSpill(t *testing.T) {
	s, err := newSpill()
	check.OK(t, err)
	at := time.Date(1969, 12, 31, 23, 59, 59, 123456000, time.UTC)
	var want []traffic.Request
	for i := range 3 * maxKnown {
		r := traffic.Request{At: at.Add(time.Duration(i) * time.Second), Client: fmt.Sprint("client", i%100)}
		switch i % 5 {
		case 0:
			r.Client = fmt.Sprint("client", i)
		case 1:
			r.User, r.Grant = fmt.Sprint("user", i), "refresh_token"
		case 2:
			r.Source, r.Failed = netip.MustParseAddr("2001:db8::7"), true
		case 3:
			r.Scope, r.Lifetime = fmt.Sprint("read ", i), -time.Hour
		case 4:
			r.Source, r.Unknown = netip.MustParseAddr("192.0.2.7"), true
		}
		want = append(want, r)
		check.OK(t, s.add(&r))
	}
	for range 2 {
		source, err := s.requests()
		check.OK(t, err)
		var got traffic.Request
		for i := range want {
			check.Equal(t, "is there", source.Next(&got), true)
			if got.At.Equal(want[i].At) {
				got.At = want[i].At
			}
			if got != want[i] {
				t.Fatalf("request %d is %+v, want %+v", i, got, want[i])
			}
		}
		check.Equal(t, "more", source.Next(&got), false)
		check.OK(t, source.Err())
	}
	check.OK(t, s.file.Truncate(1000))
	source, err := s.requests()
	check.OK(t, err)
	var n int
	for r := (traffic.Request{}); source.Next(&r); {
		n++
	}
	check.Equal(t, "fewer", n < len(want), true)
	check.ErrorSays(t, source.Err(), "read the temporary file again")
	check.OK(t, s.close())
	if _, err := os.Stat(s.file.Name()); err == nil {
		t.Error("the file is still there")
	}
}

// TestSeries: the parts grow with the time, and no request is lost.
func TestSeries(t *testing.T) {
	s := newSeries(10)
	noon := time.Date(2026, 3, 1, 12, 0, 7, 0, time.UTC)
	for i, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "12:00:07 1 [1]"},
		{9 * time.Second, "12:00:07 1 [1 0 0 0 0 0 0 0 0 1]"},
		{10 * time.Second, "12:00:05 5 [1 0 2]"},
		{time.Hour, "12:00:00 900 [3 0 0 0 1]"},
		{300 * 24 * time.Hour, ""},
	} {
		s.add(noon.Add(step.after), traffic.Denied)
		r := s.result(noon.Add(step.after))
		got := fmt.Sprintf("%s %v %v", r.Start.Format(time.TimeOnly), float64(r.Step), r.Refused)
		if step.want != "" {
			check.Equal(t, step.after.String(), got, step.want)
		}
		var sum uint64
		for _, n := range r.Requests {
			sum += n
		}
		check.Equal(t, "sum", sum, uint64(i+1))
		check.Equal(t, "few parts", len(r.Requests) <= 10, true)
	}
}

// TestUsers: the count is exact up to the bound, and then almost exact.
func TestUsers(t *testing.T) {
	u, a, b := newUsers(1000), &client{id: "a"}, &client{id: "b"}
	hash := func(i int) uint64 { return uint64(i+1) * 0x9e3779b97f4a7c15 }
	for i := range 900 {
		u.add(hash(i), a)
		u.add(hash(i), a)
	}
	check.Equal(t, "exact", u.byClient()[a], uint64(900))
	check.Equal(t, "estimated", u.estimated(), false)
	for i := 900; i < 20_000; i++ {
		u.add(hash(i), []*client{a, b}[i%4/3])
	}
	check.Equal(t, "estimated", u.estimated(), true)
	check.Equal(t, "kept", len(u.kept) <= 1000, true)
	if n := u.count(); n < 17_000 || n > 23_000 {
		t.Errorf("20,000 users are estimated as %d", n)
	}
	if n := u.byClient()[b]; n < 3_500 || n > 6_500 {
		t.Errorf("5,000 users of b are estimated as %d", n)
	}
}

// TestBlocked: a stretch ends with a request that passes, and after a pause.
func TestBlocked(t *testing.T) {
	b, c := blocked{}, &client{trouble: &trouble{}}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	b.refuse(c, 1, at(0), 10*time.Second)
	b.pass(1, at(5))
	check.Equal(t, "passes before it was told", c.trouble.longestBlocked, 5*time.Second)
	b.refuse(c, 1, at(100), 30*time.Second)
	b.refuse(c, 2, at(100), time.Second)
	b.refuse(c, 1, at(200), 10*time.Second)
	check.Equal(t, "blocked", c.trouble.blocked, 2)
	b.sweep(at(3000))
	check.Equal(t, "blocked", c.trouble.blocked, 2)
	b.pass(1, at(3000))
	check.Equal(t, "until one would have passed", c.trouble.longestBlocked, 110*time.Second)
	b.refuse(c, 2, at(101+3601), time.Second)
	check.Equal(t, "a pause", b[2].since, at(101+3601).UnixMilli())
	b.sweep(at(20_000))
	check.Equal(t, "blocked", c.trouble.blocked+len(b), 0)
}
