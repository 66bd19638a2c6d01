package hashing

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/secret"
)

// childMode, in the environment of a child, selects how the child fails. serverMode makes this
// binary a server.
const (
	childMode  = "TEST_CHILD"
	serverMode = "TEST_SERVER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childMode) != "":
		badChild(os.Getenv(childMode))
	case IsChild(os.Args):
		os.Exit(Child())
	case os.Getenv(serverMode) != "":
		beServer()
	default:
		goleak.VerifyTestMain(m)
	}
}

// badChild is a child that fails in one of these ways.
func badChild(mode string) {
	say := func(body string) { _, _ = os.Stdout.Write(appendFrame(nil, []byte(body))) }
	if mode == "exits" {
		os.Exit(7)
	}
	if mode == "refuses" {
		say("lower the priority: operation not permitted")
		return
	}
	if mode == "another program" {
		fmt.Println("usage: another-program [options]")
		return
	}
	say(ready)
	_, _ = readFrame(os.Stdin, make([]byte, maxFrame))
	switch mode {
	case "dies":
		os.Exit(7)
	case "short":
		say("x")
	case "long":
		say(string(make([]byte, 65)))
	case "empty":
		_, _ = os.Stdout.Write([]byte{0, 0, 0, 0})
	case "huge":
		_, _ = os.Stdout.Write([]byte{0xff, 0xff, 0xff, 0xff})
	case "half":
		_, _ = os.Stdout.Write([]byte{0, 0, 0, 32, 1, 2, 3})
		_ = os.Stdout.Close()
	case "silent":
	case "slow": // it answers the first task too late
		<-time.After(200 * time.Millisecond)
		say(string(make([]byte, 32)))
		_ = compute(os.Stdin, io.Discard)
	default:
		panic("unknown mode " + mode)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// beServer prints the process ID of its child, makes the child compute, and waits to be killed.
func beServer() {
	p, err := Open(Options{Patience: time.Minute})
	if err != nil {
		panic(err)
	}
	if _, err := p.Compute(own("x")); err != nil {
		panic(err)
	}
	fmt.Println(p.pids()[0])
	go func() { _, _ = p.Compute(slow) }()
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// own returns a task with the parameters of our own hashes.
func own(password string) secret.Task {
	return secret.Task{Password: password, Salt: []byte("0123456789abcdef"), Memory: 19 * 1024, Passes: 2, Lanes: 1, Length: 32}
}

// slow is a task that takes longer than our own hashes.
var slow = secret.Task{Password: "x", Foreign: "$pbkdf2-sha512$i=300000$c2FsdHNhbHRzYWx0$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}

// pids returns the process IDs of the children that have not ended.
func (p *Pool) pids() (pids []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.all {
		pids = append(pids, c.cmd.Process.Pid)
	}
	return pids
}

func (p *Pool) idleChildren() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
