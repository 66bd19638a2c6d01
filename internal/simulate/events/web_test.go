package events_test

import (
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/simulate/traffic"
)

// Formats of web servers differ in the text before the time. The client is the user of the line. If
// the user is uncertain, the line is unread.
func TestWebColumns(t *testing.T) {
	t.Parallel()
	const shifted = "user: is ambiguous among the columns before the time"
	for before, want := range map[string]string{ // client and source, or a problem
		`192.0.2.7 - batch`:                                    `"batch" 192.0.2.7`,
		`192.0.2.7, 10.0.0.1 - batch`:                          `"batch" 192.0.2.7`,
		`192.0.2.7,10.0.0.1,10.0.0.2 - batch`:                  `"batch" 192.0.2.7`,
		`192.0.2.7, 10.0.0.1, 10.0.0.2 - -`:                    "client (field user): is missing",
		`"192.0.2.7, 10.0.0.1" - batch`:                        `"batch" 192.0.2.7`,
		`192.0.2.7 , 10.0.0.1 - batch`:                         `"batch" 192.0.2.7`,
		`unknown, 10.0.0.1 - batch`:                            `"batch" `,
		`- - batch`:                                            `"batch" `,
		`192.0.2.7:4711 - batch`:                               `"batch" 192.0.2.7`,
		`[2001:db8::7]:4711, 10.0.0.1 - batch`:                 `"batch" 2001:db8::7`,
		`2001:db8::7 - batch`:                                  `"batch" 2001:db8::7`,
		`[2001:db8::7] - batch`:                                `"batch" 2001:db8::7`,
		`::ffff:192.0.2.7 - batch`:                             `"batch" 192.0.2.7`,
		`id.example.com:443 192.0.2.7 - batch`:                 `"batch" 192.0.2.7`,
		`id.example.com:443 192.0.2.7 - -`:                     "client (field user): is missing",
		`id.example.com 192.0.2.7, 10.0.0.1 - batch`:           `"batch" 192.0.2.7`,
		`id.example.com:443 pc7.example.net - batch`:           `"batch" `,
		`id.example.com [2001:db8::7]:4711 - batch`:            `"batch" 2001:db8::7`,
		`pc7.example.net - batch`:                              `"batch" `,
		`192.0.2.7 10.0.0.1 - batch`:                           `"batch" 192.0.2.7`,
		`192.0.2.7 - - batch`:                                  `"batch" 192.0.2.7`,
		`192.0.2.7 - [192.0.2.7] - batch`:                      `"batch" 192.0.2.7`,
		`192.0.2.7 - [192.0.2.7] - -`:                          "client (field user): is missing",
		`web-1  | 192.0.2.7 - batch`:                           `"batch" 192.0.2.7`,
		`<190>Oct 10 13:55:36 lb nginx: 192.0.2.7 - batch`:     `"batch" 192.0.2.7`,
		`2025-10-10T13:55:36Z 192.0.2.7 - batch`:               `"batch" 192.0.2.7`,
		`192.0.2.7 ident batch`:                                `"batch" 192.0.2.7`,
		`192.0.2.7 - my client`:                                `"my client" 192.0.2.7`,
		`192.0.2.7 - "my client"`:                              `"my client" 192.0.2.7`,
		`192.0.2.7 - Smith, Ada`:                               `"Smith, Ada" 192.0.2.7`,
		`192.0.2.7 - my\x20\x22client\x22`:                     `"my \"client\"" 192.0.2.7`,
		`192.0.2.7 - my\"cl\\ient`:                             `"my\"cl\\ient" 192.0.2.7`,
		`192.0.2.7 - a\ient`:                                   `"a\\ient" 192.0.2.7`,
		`192.0.2.7 - "we\"b"`:                                  `"we\"b" 192.0.2.7`,
		`192.0.2.7 - a [b] c`:                                  `"a [b] c" 192.0.2.7`,
		`192.0.2.7 - 10.1.2.3`:                                 `"10.1.2.3" 192.0.2.7`,
		`192.0.2.7 - ""`:                                       "client (field user): is missing",
		`192.0.2.7 - "-"`:                                      "client (field user): is missing",
		`192.0.2.7 - batch -`:                                  shifted,
		`192.0.2.7 - batch 10.0.0.1`:                           shifted,
		`192.0.2.7 - batch 10.0.0.1, 10.0.0.2`:                 shifted,
		`192.0.2.7 - batch 10.0.0.1 - x`:                       shifted,
		`192.0.2.7 - 10.0.0.1 x`:                               shifted,
		`id.example.com 192.0.2.7 req-1 batch`:                 shifted,
		`web-1 | pc7.example.net - batch`:                      `"batch" `,
		`192.0.2.7 - a" [10/Oct/2025:13:55:36 +0000] "b`:       "line: is not in the combined log format",
		`192.0.2.7 -`:                                          "line: is not in the combined log format",
		`192.0.2.7 - x [10/Oct/2025:13:55:36 +0000] - batch`:   shifted,
		strings.Repeat("x ", 40) + `192.0.2.7 - batch`:         `"batch" 192.0.2.7`,
		`192.0.2.7 - batch [10/Oct/2025:13:55:36 +0000] or so`: `"batch [10/Oct/2025:13:55:36 +0000] or so" 192.0.2.7`,
	} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			line := before + ` [10/Oct/2025:13:55:36.5 -0700] "POST /oauth2/token HTTP/1.1" 200 912 "-" "curl/8.5"`
			r, err := events.Open([]string{"-"}, events.Options{Format: events.Combined, Stdin: strings.NewReader(line)})
			check.OK(t, err)
			defer r.Close()
			got := ""
			var q traffic.Request
			for r.Next(&q) {
				check.Equal(t, "time", q.At.UnixMilli(), 1760129736500)
				got += fmt.Sprintf("%q ", q.Client)
				if q.Source.IsValid() {
					got += q.Source.String()
				}
			}
			for _, c := range r.Lines().Causes {
				got += c.Field + ": " + c.Problem
			}
			check.Equal(t, "read", got, want)
		})
	}
}

// Unclosed brackets do not cause the rest of a line to be searched again for each of them.
func TestStrayBracketsAreCheap(t *testing.T) {
	t.Parallel()
	const request = `192.0.2.1 - c [10/Oct/2025:20:55:36 +0000] "POST /token HTTP/1.1" 200 9` + "\n"
	r := openText(t, request+strings.Repeat(strings.Repeat(` [`, 400_000)+"]\n", 20), events.Options{})
	check.Equal(t, "clients", clientsOf(r), []string{"c"})
	check.Equal(t, "lines", summary(r.Lines()), "1 read, 0 skipped, 20 unread: -:2: line: is not in the common log format")
}
