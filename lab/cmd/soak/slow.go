package main

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"oauth-server/lab/servers"
)

// tally counts outcomes.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) add(outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[outcome]++
}

// manners are the ways of being slow: what a connection sends at once, before one byte a second.
var manners = []struct {
	name, opening string
	silent        bool
}{
	{name: "header byte by byte", opening: "POST /token HTTP/1.1\r\nHost: localhost\r\nX-Slow: "},
	{name: "body byte by byte", opening: "POST /token HTTP/1.1\r\nHost: localhost\r\n" +
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 4096\r\n\r\n"},
	{name: "silent", silent: true},
}

const (
	// dialSpread is the time over which the first connections are opened.
	dialSpread = 2 * time.Second
	// redialDelay is the pause after a connection ended, so that a server that refuses is not
	// flooded with connections: the attack is to hold them.
	redialDelay = 100 * time.Millisecond
)

// slow keeps connections open and sends almost nothing. One that ends is opened again.
func (s *soak) slow(ctx context.Context, t *tally, from []string) {
	start := time.Now()
	var held sync.WaitGroup
	for i := range connections {
		held.Go(func() {
			next := start.Add(dialSpread * time.Duration(i) / time.Duration(connections))
			for servers.Pause(ctx, time.Until(next)) == nil {
				dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from[i%len(from)])}, Timeout: patience}
				t.add(s.hold(ctx, dialer, i%len(manners)))
				next = time.Now().Add(redialDelay)
			}
		})
	}
	held.Wait()
}

// hold keeps one connection until the server closes it, and returns how it ended.
func (s *soak) hold(ctx context.Context, dialer *net.Dialer, manner int) string {
	m := manners[manner]
	conn, err := dialer.DialContext(ctx, "tcp", s.server.Address)
	if err != nil {
		if ctx.Err() != nil {
			return "held at the end"
		}
		return "not connected"
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(m.opening)); err != nil {
		return "closed: " + m.name
	}
	buffer := make([]byte, 512)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		_, err := conn.Read(buffer)
		if ctx.Err() != nil {
			return "held at the end"
		}
		if err == nil {
			continue // the answer to an unfinished request; the end follows
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return "closed: " + m.name
		}
		if m.silent {
			continue
		}
		if _, err := conn.Write([]byte{'a'}); err != nil {
			return "closed: " + m.name
		}
	}
}
