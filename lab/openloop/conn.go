package openloop

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"oauth-server/lab/load"
)

// open begins a connection, which is idle then: a request is written once it is established.
func (l *loop) open() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("connection number %d: %w", len(l.conns)+1, err)
	}
	c := &conn{fd: fd}
	l.conns[int32(fd)] = c //nolint:gosec // G115: a descriptor
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	if len(l.from) > 0 {
		// Connect chooses the port, so that each address has all ports for each other address.
		from := unix.SockaddrInet4{Addr: l.from[l.result.Opened%len(l.from)].As4()}
		err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err := errors.Join(err, unix.Bind(fd, &from)); err != nil {
			return err
		}
	}
	l.result.Opened++
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(l.address.Port()), Addr: l.address.Addr().As4()})
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("connect to %s: %w", l.address, err)
	}
	c.connected = err == nil
	l.idle = append(l.idle, c)
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET, Fd: int32(fd), //nolint:gosec // G115: a descriptor
	})
}

// poll handles all pending connection events once, without waiting.
func (l *loop) poll() error {
	n, err := unix.EpollWait(l.epoll, l.events, 0)
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
		status, last, body, err := load.Parse(c.answer)
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
		l.idle = append(l.idle, c)
	}
}

// drop closes a connection. A request under way ends with that status.
func (l *loop) drop(c *conn, status int) error {
	if c.busy {
		l.done(c, status, nil)
	} else if i := slices.Index(l.idle, c); i >= 0 {
		l.idle = slices.Delete(l.idle, i, i+1)
	}
	delete(l.conns, int32(c.fd)) //nolint:gosec // G115: a descriptor
	return unix.Close(c.fd)
}

func (l *loop) close() error {
	errs := []error{unix.Close(l.epoll)}
	for _, c := range l.conns {
		errs = append(errs, unix.Close(c.fd))
	}
	return errors.Join(errs...)
}
