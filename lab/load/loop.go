package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// loop polls the connections of all streams.
type loop struct {
	epoll   int
	events  []unix.EpollEvent
	conns   map[int32]*conn
	streams []*stream

	began    time.Time
	from, to time.Duration // which requests count, by when they were due
	last     time.Duration // when the latest round began
	stalled  time.Duration // see Result
}

// conn is a connection with at most one request under way.
type conn struct {
	fd      int
	stream  *stream
	address netip.AddrPort
	due     time.Duration
	busy    bool
	answer  []byte // what has been read of it
	buffer  [8192]byte
}

// run sends what is due until the end, and then waits for the last answers.
func (l *loop) run(ctx context.Context, warm, d time.Duration) error {
	l.began, l.from, l.to = time.Now(), warm, warm+d
	for {
		now := time.Since(l.began)
		sending := now < l.to
		l.noteRound(now)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, s := range l.streams {
			if sending {
				s.plan(now)
			}
			for len(s.idle) > 0 && s.waiting() > 0 {
				if err := l.send(s); err != nil {
					return err
				}
			}
		}
		if !sending && (now > l.to+lastAnswers || l.quiet()) {
			break
		}
		if err := l.poll(); err != nil {
			return err
		}
	}
	l.giveUp()
	return nil
}

// noteRound notes when a round begins. One that begins so much later than the one before shows that this thread did not
// run: a round takes microseconds.
func (l *loop) noteRound(now time.Duration) {
	if gap := now - l.last; gap > time.Millisecond && now >= l.from && now < l.to {
		l.stalled += gap
	}
	l.last = now
}

// quiet reports whether no request waits or is under way.
func (l *loop) quiet() bool {
	for _, s := range l.streams {
		if s.waiting() > 0 || len(s.idle) < s.Connections {
			return false
		}
	}
	return true
}

// giveUp counts what has no answer.
func (l *loop) giveUp() {
	now := time.Since(l.began)
	for _, c := range l.conns {
		if c.busy {
			l.count(c.stream, c.due, now, 0)
		}
	}
	for _, s := range l.streams {
		for s.waiting() > 0 {
			l.count(s, s.take(), now, 0)
		}
	}
}

// count counts one request, if it was due in the time that counts.
func (l *loop) count(s *stream, due, now time.Duration, status int) {
	if status != 0 && now >= l.from && now < l.to {
		s.answered++
	}
	if due >= l.from && due < l.to {
		s.took = append(s.took, now-due)
		s.statuses[status]++
		if status == http.StatusOK {
			s.ok = append(s.ok, now-due)
		}
	}
}

func (l *loop) send(s *stream) error {
	c := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	c.due, c.busy, c.answer = s.take(), true, c.buffer[:0]
	request := s.Request(s.sent)
	s.sent++
	n, err := unix.Write(c.fd, request)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return l.renew(c)
	}
	if err == nil && n < len(request) {
		err = errors.New("the socket takes no whole request")
	}
	return err
}

func (l *loop) poll() error {
	n, err := unix.EpollWait(l.epoll, l.events, 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	for _, e := range l.events[:max(n, 0)] {
		if err := l.read(l.conns[e.Fd]); err != nil {
			return err
		}
	}
	return nil
}

// read reads what has arrived, and counts the answer if it is complete.
func (l *loop) read(c *conn) error {
	n, err := unix.Read(c.fd, c.buffer[len(c.answer):])
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil
	case n <= 0: // the server has closed the connection
		return l.renew(c)
	}
	c.answer = c.buffer[:len(c.answer)+n]
	status, last, _, err := Parse(c.answer)
	if err != nil || status == 0 {
		return err
	}
	l.count(c.stream, c.due, time.Since(l.began), status)
	c.busy = false
	if last {
		return l.renew(c)
	}
	c.stream.idle = append(c.stream.idle, c)
	return nil
}

var (
	endOfHeader = []byte("\r\n\r\n")
	sizeField   = []byte("\r\nContent-Length: ")
	closeField  = []byte("\r\nConnection: close")

	errAnswer = errors.New("not an answer that the load generator can read")
)

// Parse returns the status of an HTTP/1.1 answer, whether it is the last one of its connection, and its body. The status is
// 0 until all of the answer is there.
func Parse(answer []byte) (status int, last bool, body []byte, err error) {
	end := bytes.Index(answer, endOfHeader)
	if end < 0 {
		return 0, false, nil, nil
	}
	header := answer[:end+2]
	_, rest, found := bytes.Cut(header, sizeField)
	if !found || len(header) < len("HTTP/1.1 200") {
		return 0, false, nil, fmt.Errorf("%w: %q", errAnswer, header)
	}
	digits, _, _ := bytes.Cut(rest, endOfHeader[:2])
	size, err := strconv.Atoi(string(digits))
	if err != nil {
		return 0, false, nil, fmt.Errorf("%w: %q", errAnswer, header)
	}
	status, err = strconv.Atoi(string(header[9:12]))
	body = answer[end+len(endOfHeader):]
	if err != nil || len(body) < size {
		return 0, false, nil, err
	}
	return status, bytes.Contains(header, closeField), body[:size], nil
}

// connect opens a connection of the stream.
func (l *loop) connect(s *stream, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return l.open(&conn{stream: s, address: to})
}

func (l *loop) open(c *conn) (err error) {
	if c.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	l.conns[int32(c.fd)] = c //nolint:gosec // G115: a descriptor
	if c.stream.From != "" {
		from, err := netip.ParseAddr(c.stream.From)
		if err != nil {
			return err
		}
		if err := unix.Bind(c.fd, &unix.SockaddrInet4{Addr: from.As4()}); err != nil {
			return err
		}
	}
	if err := unix.Connect(c.fd, &unix.SockaddrInet4{Port: int(c.address.Port()), Addr: c.address.Addr().As4()}); err != nil {
		return fmt.Errorf("connect to %s: %w", c.address, err)
	}
	if err := errors.Join(unix.SetNonblock(c.fd, true), unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)); err != nil {
		return err
	}
	c.stream.idle = append(c.stream.idle, c)
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)}) //nolint:gosec // G115: a descriptor
}

// renew replaces a connection that the server has closed, and counts a request under way as not answered.
func (l *loop) renew(c *conn) error {
	if c.busy {
		l.count(c.stream, c.due, time.Since(l.began), 0)
		c.busy = false
	} else {
		l.forget(c)
	}
	delete(l.conns, int32(c.fd)) //nolint:gosec // G115: a descriptor
	if err := unix.Close(c.fd); err != nil {
		return err
	}
	return l.open(c)
}

// forget takes a connection from the idle ones.
func (l *loop) forget(c *conn) {
	for i, other := range c.stream.idle {
		if other == c {
			c.stream.idle = append(c.stream.idle[:i], c.stream.idle[i+1:]...)
			return
		}
	}
}

func (l *loop) close() error {
	errs := []error{unix.Close(l.epoll)}
	for _, c := range l.conns {
		errs = append(errs, unix.Close(c.fd))
	}
	return errors.Join(errs...)
}
