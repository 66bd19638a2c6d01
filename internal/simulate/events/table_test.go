package events_test

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
)

// A cell can have line breaks. Text inside it is not a record. Text that only looks like such a
// cell is not a cell.
func TestCellsWithLineBreaks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text    string
		clients string
		lines   string
	}{
		"behind what is needed": {"time,client,agent\n1700000000,a,\"curl\n1700000000,ghost,x\"\n1700000001,b,curl\n", "a b", "2 read, 1 skipped, 0 unread"},
		"before it":             {"agent,time,client\n\"x\n1,2,3\n\n\"\"y\"\"\",1700000000,a\n\"\",1700000001,b\n", "a b", "2 read, 1 skipped, 0 unread"},
		"in a client":           {"time,client\n1700000000,\"a\nb\"\n", "a\nb", "1 read, 1 skipped, 0 unread"},
		"carriage returns":      {"time;client;agent\r\n1700000000;a;\"curl\r\n1700000000;ghost;x\"\r\n1700000001;b;c\r\n", "a b", "2 read, 1 skipped, 0 unread"},
		"tabs":                  {"time\tclient\tagent\n1700000000\ta\t\"curl\n1700000000\tghost\tx\"", "a", "1 read, 1 skipped, 0 unread"},
		"in a name":             {"time,\"the\nagent\",client\n1700000000,x,a\n", "a", "1 read, 1 skipped, 0 unread"},
		"in several cells":      {"time,client,a,b\n1700000000,a,\"\n\",\"\n\n\"\n1700000001,b,,\n", "a b", "2 read, 1 skipped, 0 unread"},
		"a quote that is open":  {"time,client\n1700000000,\"a\n1700000001,b\n", "b", "1 read, 1 skipped, 1 unread: -:2: line: has an unclosed quoted column"},
		"two that are open": {
			"time,client\n1700000000,\"a\n1700000001,b\n1700000001,\"c\n", "b",
			"1 read, 1 skipped, 2 unread: -:2: line: has an unclosed quoted column",
		},
		"too many columns": {
			"time,client,agent\n1700000000,a,\"x\n1700000001,b,\",y\n1700000002,c,y\n", "c",
			"1 read, 1 skipped, 2 unread: -:2: line: has an unclosed quoted column",
		},
		"a quote in a cell":          {"time,client\n1700000000,5\" a\n1700000001,b\n", "5\" a b", "2 read, 1 skipped, 0 unread"},
		"spaces before quotes":       {"time, \"client\", agent\n1700000000, \"a, \"\"b\"\"\", \"x\n1,2,3\"\n1700000001, \"c\",x\n", "a, \"b\" c", "2 read, 1 skipped, 0 unread"},
		"the line of what is unread": {"time,client,agent\n1700000000,a,\"\n\n\"\nnoon,b,c\n", "a", "1 read, 1 skipped, 1 unread: -:5: time: is not a time with a date"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openText(t, tt.text, events.Options{Mapping: mapping(t, "time=time,client=client")})
			check.Equal(t, "clients", strings.Join(clientsOf(r), " "), tt.clients)
			check.Equal(t, "lines", summary(r.Lines()), tt.lines)
		})
	}
}

// A record can be as long as the longest line, and no longer.
func TestLongCells(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{
		1000 << 10: "2 read, 1 skipped, 0 unread",
		1100 << 10: "1 read, 1 skipped, 10001 unread: -:3: line: has too few columns; -:2: line: has an unclosed quoted column",
	} {
		cell := strings.Repeat(strings.Repeat("x", size/10_000)+"\n", 10_000)
		r := openText(t, "time,client,agent\n1700000000,\"a"+cell+"\",x\n1700000001,b,x\n", events.Options{Mapping: mapping(t, "time=time,client=client")})
		clientsOf(r)
		check.Equal(t, "lines", summary(r.Lines()), want)
	}
}

// Unclosed quotes do not cause the rest of the log to be read again for each of them.
func TestStrayQuotesAreCheap(t *testing.T) {
	t.Parallel()
	r := openText(t, "time,client\n"+strings.Repeat("a\",\"c\n", 100_000)+"1700000001,b\n", events.Options{})
	check.Equal(t, "clients", clientsOf(r), []string{"b"})
}
