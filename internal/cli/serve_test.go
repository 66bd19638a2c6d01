package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
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

// The log of a server that was stopped has each request, even if a second signal ends it at once.
func TestStopWritesTheLog(t *testing.T) {
	const requests = 200
	for name, signals := range map[string]int{"one signal": 1, "two": 2} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, "serve", "--listen", "127.0.0.1:0", "--data", storeFile(t), "--drain-delay", "1h")
			addr := p.listening(t)
			for range requests {
				res, err := http.Get("http://" + addr + "/.well-known/jwks.json")
				check.OK(t, err)
				_, err = io.Copy(io.Discard, res.Body)
				check.OK(t, errors.Join(err, res.Body.Close()))
			}
			want := command.ExitOK
			if signals == 1 {
				check.OK(t, p.Process.Signal(syscall.SIGINT))
			} else {
				check.OK(t, p.Process.Signal(syscall.SIGTERM))
				p.awaitLog(t, "msg=draining")
				check.OK(t, p.Process.Signal(syscall.SIGTERM))
				want = -1
			}
			check.Equal(t, "status", p.status(t), want)
			check.Equal(t, "lines", strings.Count(p.log.String(), "path=/.well-known/jwks.json status=200"), requests)
		})
	}
}

// A log that cannot be written does not stop the server. Its exit status reports it.
func TestFullLog(t *testing.T) {
	for name, open := range map[string]func() (*os.File, error){
		"full disk": func() (*os.File, error) { return os.OpenFile("/dev/full", os.O_WRONLY, 0) },
		"no reader": func() (*os.File, error) {
			r, w, err := os.Pipe()
			return w, errors.Join(err, r.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := open()
			if errors.Is(err, os.ErrNotExist) {
				t.Skip("this system has no /dev/full")
			}
			check.OK(t, err)
			defer func() { _ = log.Close() }()
			clients := testworld.FreeAddress(t)
			cmd := newProgram(t, "serve", "--listen", clients, "--admin-listen=", "--data", storeFile(t))
			cmd.Stderr = log
			check.OK(t, cmd.Start())
			check.Eventually(t, "it answers", func() bool {
				res, err := http.Get("http://" + clients + "/readyz")
				return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
			})
			check.OK(t, cmd.Process.Signal(syscall.SIGTERM))
			check.ErrorSays(t, cmd.Wait(), "exit status 1")
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
