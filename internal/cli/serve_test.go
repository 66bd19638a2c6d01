package cli

import (
	"bufio"
	"encoding/json"
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

func TestServeLogsJSON(t *testing.T) {
	p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t), "--log-format", "json")
	for line := range p.lines {
		var record struct{ Level, Msg, Address, Issuer string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if record.Msg == "listening" {
			if record.Issuer != "http://"+record.Address {
				t.Errorf("%+v", record)
			}
			return
		}
	}
	t.Fatal("it ended without listening")
}

func TestServeOnATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	defer func() { _ = l.Close() }()
	p := launch(t, "serve", "--listen", l.Addr().String(), "--data", storeFile(t))
	if status := p.status(t); status != command.ExitFailed || !strings.Contains(p.log.String(), "address already in use") {
		t.Errorf("status %d: %s", status, p.log.String())
	}
}

func TestStoreOfARunningServer(t *testing.T) {
	data := storeFile(t)
	p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", data)
	p.listening(t)
	for _, args := range [][]string{
		{"keys", "list"},
		{"serve", "--listen", "127.0.0.1:0"},
	} {
		_, stderr, status := run(t, "", append(args, "--data", data)...)
		if status != command.ExitFailed || !strings.Contains(stderr, "stop that server") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: status %d: %s", args, status, stderr)
		}
	}
}

// What a server has answered survives being killed.
func TestStoreAfterAKill(t *testing.T) {
	data := storeFile(t)
	var made credentials
	runJSON(t, &made, "", "client", "create", "shop", "--data", data)
	p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", data)
	p.listening(t)
	check.OK(t, p.Process.Kill())
	_ = p.status(t)
	var clients []credentials
	runJSON(t, &clients, "", "client", "list", "--data", data)
	if len(clients) != 1 || clients[0].ClientID != "shop" {
		t.Errorf("%+v", clients)
	}
}
