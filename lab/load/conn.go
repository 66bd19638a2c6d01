package load

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// conn is a connection with at most one request under way.
type conn struct {
	fd        int
	stream    *stream
	connected bool
	busy      bool
	number    int // of requests so far
	call      Call
	due, sent time.Duration
	rest      []byte // of the request, not written yet
	answer    []byte // the part read so far
	buffer    [8192]byte
}

// open begins a connection, which is idle then: a request is written once it is established.
func (l *loop) open(s *stream) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("connection number %d: %w", len(l.conns)+1, err)
	}
	c := &conn{fd: fd, stream: s}
	l.conns[int32(fd)] = c //nolint:gosec // G115: a descriptor
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	if len(s.from) > 0 {
		// Connect chooses the port, so that each address has all ports for each other address.
		from := unix.SockaddrInet4{Addr: s.from[s.result.Opened%len(s.from)].As4()}
		err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err := errors.Join(err, unix.Bind(fd, &from)); err != nil {
			return err
		}
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(l.address.Port()), Addr: l.address.Addr().As4()})
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("connect to %s: %w", l.address, err)
	}
	c.connected = err == nil
	s.result.Opened++
	s.open++
	s.idle = append(s.idle, c)
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET, Fd: int32(fd), //nolint:gosec // G115: a descriptor
	})
}

// poll handles all pending connection events once.
func (l *loop) poll() error {
	n, err := unix.EpollWait(l.epoll, l.events, l.asleep)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	for _, e := range l.events[:max(n, 0)] {
		c := l.conns[e.Fd]
		if c == nil {
			continue // dropped in this round
		}
		if e.Events&unix.EPOLLOUT != 0 {
			c.connected = true
			if err := l.write(c); err != nil {
				return err
			}
		}
		if l.conns[e.Fd] == c && e.Events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			if err := l.read(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes the rest of the request.
func (l *loop) write(c *conn) error {
	if !c.connected || len(c.rest) == 0 {
		return nil
	}
	n, err := unix.Write(c.fd, c.rest)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return nil // poll has it written later
	case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET):
		return l.drop(c, Closed)
	case err != nil:
		return fmt.Errorf("write a request: %w", err)
	}
	c.rest = c.rest[n:]
	return nil
}

// read reads all available bytes from a connection, and ends its request if the answer is complete.
func (l *loop) read(c *conn) error {
	for {
		n, err := unix.Read(c.fd, c.buffer[len(c.answer):])
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case n <= 0: // the server has closed the connection
			return l.drop(c, Closed)
		case !c.busy:
			return fmt.Errorf("an answer without a request: %q", c.buffer[:n])
		}
		c.answer = c.buffer[:len(c.answer)+n]
		status, last, body, err := parse(c.answer)
		if err != nil {
			return err
		}
		if status == 0 {
			if len(c.answer) == len(c.buffer) {
				return fmt.Errorf("an answer of more than %d bytes", len(c.buffer))
			}
			continue
		}
		l.done(c, status, body)
		c.answer = c.buffer[:0]
		if last {
			return l.drop(c, Closed)
		}
		c.stream.idle = append(c.stream.idle, c)
	}
}

// drop closes a connection. A request under way ends with that status.
func (l *loop) drop(c *conn, status int) error {
	s := c.stream
	if c.busy {
		l.done(c, status, nil)
	} else if i := slices.Index(s.idle, c); i >= 0 {
		s.idle = slices.Delete(s.idle, i, i+1)
	}
	s.open--
	delete(l.conns, int32(c.fd)) //nolint:gosec // G115: a descriptor
	return unix.Close(c.fd)
}
