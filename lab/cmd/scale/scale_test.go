package main

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt" //nolint:depguard // makes the file that is read
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/store/mongo/wire"
	"oauth-server/lab/page"
)

func TestChosenParts(t *testing.T) {
	for list, want := range map[string]string{
		"": "refresh,families,clients,policies,rest", "rest, refresh": "refresh,rest", "clients": "clients",
	} {
		found, err := chosen(list)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range found {
			got = append(got, p.name)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("chosen(%q) = %v, want %s", list, got, want)
		}
	}
	if _, err := chosen("clients,nothing"); err == nil {
		t.Error("a part that there is not was accepted")
	}
}

// The page has a section for each part, so that its tables can be written.
func TestPageHasAllSections(t *testing.T) {
	text, err := os.ReadFile("../../../" + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		if _, err := page.With(string(text), name, "text"); err != nil {
			t.Error(err)
		}
	}
}

func TestTable(t *testing.T) {
	old, now := newFigures(), newFigures()
	old.note("x/1/", "fails: too many")
	now.set("x/1/start", 1.26)
	now.set("x/1/peak", 1234.5)
	got := table([]string{"clients", "release"}, []column{{"start", "start", seconds}, {"peak", "peak", unit("MiB")}}, both("1", "x/1/", old, now))
	const want = `| clients | release | start | peak |
|---|---|---|---|
| 1 | before | fails: too many | – |
| 1 | now | 1.3 s | 1,235 MiB |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.001: "0", 0.25: "0.25", 2: "2", 2.46: "2.5", 46.4: "46", 999.6: "1,000", 1234567: "1,234,567", -1500: "−1,500",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.0005: "0.50 ms", 0.0123: "12 ms", 0.25: "0.25 s", 1.94: "1.9 s", 36: "36 s"} {
		if got := seconds(v); got != want {
			t.Errorf("seconds(%v) = %q, want %q", v, got, want)
		}
	}
}

// The figures of the release before are kept over runs; a part that is measured again replaces its own only.
func TestFiguresOfOnePartAreReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "old.json")
	f, err := readFigures(file)
	if err != nil {
		t.Fatal(err)
	}
	f.set("clients/1/start", 1)
	f.set("rest/1/x", 2)
	f.note("clients/2/", "fails")
	if err := f.write(file); err != nil {
		t.Fatal(err)
	}
	if f, err = readFigures(file); err != nil {
		t.Fatal(err)
	}
	again := newFigures()
	again.set("clients/1/peak", 3)
	f.replace("clients", again)
	if diff := cmp.Diff(map[string]float64{"clients/1/peak": 3, "rest/1/x": 2}, f.Values); diff != "" {
		t.Error(diff)
	}
	if len(f.Notes) > 0 {
		t.Errorf("notes of what was measured again: %v", f.Notes)
	}
}

// That the release before cannot do something is a result. That this one cannot is a failure.
func TestFailuresOfTheReleaseBeforeAreShown(t *testing.T) {
	failure := errors.New("too many\nand more")
	before, now := &release{name: "old", figures: newFigures()}, &release{name: "new", figures: newFigures()}
	if err := before.attempt("clients/1/", failure); err != nil {
		t.Error(err)
	}
	if got := before.figures.Notes["clients/1/"]; got != "fails: too many" {
		t.Errorf("the note is %q", got)
	}
	if err := now.attempt("clients/1/", failure); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
}

func TestParseBench(t *testing.T) {
	found, err := parseBench(`goos: linux
BenchmarkScaleFamilies/families=1000-2         	       1	4492244237 ns/op	       409.6 file-B/family	       315.8 p50-µs
BenchmarkRotateFamily-2 	 5000	 1000 ns/op	 2.000 commands/op
PASS
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]float64{
		"families=1000/": {"ns/op": 4492244237, "file-B/family": 409.6, "p50-µs": 315.8},
		"":               {"ns/op": 1000, "commands/op": 2},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"PASS\n", "BenchmarkX-2 1 many ns/op\n"} {
		if found, err := parseBench(bad); err == nil {
			t.Errorf("parseBench(%q) = %v", bad, found)
		}
	}
}

func TestProc(t *testing.T) {
	got := residentOf("Name:\tserver\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\nRssAnon:\t  120 kB\nRssFile:\t   80 kB\n")
	if want := (resident{300, 200, 120, 80}); got != want {
		t.Errorf("resident memory %v, want %v", got, want)
	}
}

// The number of the last transaction is read from a file that is open.
func TestCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	before, err := commits(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucketIfNotExists([]byte("b")); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := commits(path); err != nil || after != before+3 {
		t.Errorf("after 3 commits the number went from %d to %d, %v", before, after, err)
	}
	if _, err := txidOf(make([]byte, 80)); err == nil {
		t.Error("a page of zeros has a transaction")
	}
}

func message(t *testing.T, command bson.D) wire.Message {
	t.Helper()
	m, err := wire.New(command, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCommandOf(t *testing.T) {
	oldGreeting := message(t, bson.D{{Key: "isMaster", Value: 1}})
	binary.LittleEndian.PutUint32(oldGreeting[12:], 2004)
	for want, m := range map[string]wire.Message{
		"find clients": message(t, bson.D{{Key: "find", Value: "clients"}, {Key: "filter", Value: bson.D{}}}),
		"getMore":      message(t, bson.D{{Key: "getMore", Value: int64(1)}, {Key: "collection", Value: "x"}}),
		driver:         oldGreeting,
		"ping":         message(t, bson.D{{Key: "ping", Value: 1}}),
	} {
		if got := commandOf(m); got != want {
			t.Errorf("command %q, want %q", got, want)
		}
	}
	for _, name := range []string{"isMaster", "ismaster", "hello"} {
		if got := commandOf(message(t, bson.D{{Key: name, Value: 1}})); got != driver {
			t.Errorf("the command of the greeting %s is %q", name, got)
		}
	}
}

// What passes the proxy arrives as it was, and is counted.
func TestProxyCounts(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	p, err := newProxy(t.Context(), "mongodb://"+server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	client, err := net.Dial("tcp", strings.TrimPrefix(p.URI, "mongodb://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	upstream, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = upstream.Close() }()
	question := message(t, bson.D{{Key: "find", Value: "clients"}})
	reply := message(t, bson.D{{Key: "ok", Value: 1}})
	for range 2 {
		for _, step := range []struct {
			from, to net.Conn
			m        wire.Message
		}{{client, upstream, question}, {upstream, client, reply}} {
			if _, err := step.from.Write(step.m); err != nil {
				t.Fatal(err)
			}
			got, err := wire.Read(step.to)
			if err != nil || string(got) != string(step.m) {
				t.Fatalf("got %q, %v", got, err)
			}
		}
	}
	counts, received := p.counts()
	if diff := cmp.Diff(map[string]int{"find clients": 2}, counts); diff != "" || received != int64(2*len(reply)) {
		t.Errorf("%d bytes of answers; commands:\n%s", received, diff)
	}
}

// A row of the table is a command that any instance sends at least once in ten minutes.
func TestCommandsAtRest(t *testing.T) {
	old, now := newFigures(), newFigures()
	old.set("rest/mongodb/1000x1/aggregate clients", 30)
	now.set("rest/mongodb/1000x1/find audit", 60)
	now.set("rest/mongodb/1000x1/find rare", 0.05)
	now.set("rest/mongodb/1000x1/answers", 5)
	now.set("rest/mongodb/1000x1/commands", 60)
	now.set("rest/embedded/1000x1/commits", 1)
	if diff := cmp.Diff([]string{"aggregate clients", "find audit"}, commandsIn(old, now)); diff != "" {
		t.Error(diff)
	}
	if got := rate(now, "rest/mongodb/1000x1/", "find audit"); got != "–" {
		t.Errorf("what was not measured is %q", got)
	}
	now.set("rest/mongodb/1000x1/processor", 1)
	if got := rate(now, "rest/mongodb/1000x1/", "aggregate clients"); got != "0" {
		t.Errorf("what is never sent is %q", got)
	}
}

// What was not measured of the release before is computed, and the page says so.
func TestComputed(t *testing.T) {
	old, measured := newFigures(), sizes{refreshes: []int{100, 1000}, refreshesBefore: 100}
	if got := computed(old, measured); got != "" {
		t.Errorf("computed from nothing: %q", got)
	}
	old.set("refresh/embedded/1000/bytes", 332)
	old.set("refresh/mongodb/100/bytes", 375)
	if got := computed(old, measured); !strings.Contains(got, "not measured") || !strings.Contains(got, "3.3 GB") || !strings.Contains(got, "3.8 GB") {
		t.Errorf("computed: %q", got)
	}
}

// TestWhereBefore: figures of another run are named as such.
func TestWhereBefore(t *testing.T) {
	old := newFigures()
	old.Measured = "2026-01-02: another machine"
	refresh, families := part{name: "refresh", hasOld: true}, part{name: "families"}
	for _, tt := range []struct {
		w    world
		p    part
		want string
	}{
		{world{old: old}, refresh, " The release before was measured on 2026-01-02: another machine."},
		{world{old: old}, families, ""},
		{world{old: old, before: &release{}}, refresh, ""},
		{world{old: newFigures()}, refresh, ""},
	} {
		if got := tt.w.whereBefore(tt.p); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.p.name, got, tt.want)
		}
	}
}
