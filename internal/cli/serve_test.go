package cli

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

func TestServeListensAndStopsOnASignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t))
			addr := p.listening(t)
			res, err := http.Get("http://" + addr + "/healthz")
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", res, err)
			}
			_ = res.Body.Close()
			check.OK(t, p.Process.Signal(signal))
			if status := p.status(t); status != command.ExitOK {
				t.Errorf("status %d:\n%s", status, p.log.String())
			}
			if out := p.stdout.String(); out != "" {
				t.Errorf("standard output is for answers: %q", out)
			}
			if n := strings.Count(p.log.String(), "listening"); n != 1 {
				t.Errorf("%d lines say listening", n)
			}
		})
	}
}

func TestSecondSignalQuitsAtOnce(t *testing.T) {
	p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t), "--shutdown-timeout", "1h")
	conn, err := net.Dial("tcp", p.listening(t))
	check.OK(t, err)
	defer func() { _ = conn.Close() }()
	// A request whose body never comes keeps the graceful stop waiting.
	_, err = fmt.Fprint(conn, "POST /token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
		"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
	check.OK(t, err)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q, %v", line, err)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	p.awaitLog(t, "msg=stopping")
	_ = p.Process.Signal(syscall.SIGTERM)
	if status := p.status(t); status != -1 {
		t.Errorf("status %d, want to be ended by the signal:\n%s", status, p.log.String())
	}
}
