//go:build linux

package hashing

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
)

// stat returns the fields of a stat file of /proc, beginning with the third, the state. It returns
// nil if the file does not exist.
func stat(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// nices returns the priorities of all threads of a process.
func nices(t *testing.T, pid int) (all []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	check.OK(t, err)
	for _, file := range files {
		if fields := stat(file); fields != nil {
			all = append(all, fields[16])
		}
	}
	return all
}

// Attack (sign-ins): Sign-ins delay token requests. On Linux, separate processes hash passwords
// at the lowest priority. Also secret.TestStarved.
func TestAllThreadsHaveTheLowestPriority(t *testing.T) {
	p := open(t)
	_, err := p.Compute(own("x"))
	check.OK(t, err)
	pid := p.pids()[0]
	threads := nices(t, pid)
	if len(threads) < 2 {
		t.Errorf("%d threads", len(threads))
	}
	for _, nice := range threads {
		check.Equal(t, "priority", nice, "19")
	}
	for _, nice := range nices(t, os.Getpid()) {
		if nice == "19" {
			t.Error("so have those of the server")
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	check.OK(t, err)
	check.Equal(t, "command line", string(text), "oauth-server\x00"+Argument+"\x00")
	group, err := syscall.Getpgid(pid)
	check.OK(t, err)
	check.Equal(t, "process group", group, pid)
}

// A child does not get the environment of the server, which may hold secrets.
func TestEnvironmentOfAChild(t *testing.T) {
	t.Setenv("OAUTH_KEYS_SECRET", "s3cret")
	t.Setenv("GORACE", "")
	t.Setenv("GOCOVERDIR", "")
	check.Equal(t, "environment", open(t).idle[0].cmd.Env, []string{"GOMAXPROCS=1"})
}

func TestChildIgnoresSignalsOfTheTerminal(t *testing.T) {
	p := open(t)
	pid := p.pids()[0]
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		check.OK(t, syscall.Kill(pid, s))
	}
	_, err := p.Compute(own("x"))
	check.OK(t, err)
	check.Equal(t, "children", p.pids(), []int{pid})
}

// TestChildEndsWithTheServer: a child ends if the server is killed while the child computes.
func TestChildEndsWithTheServer(t *testing.T) {
	server := exec.CommandContext(t.Context(), program)
	server.Env = append(os.Environ(), serverMode+"=1")
	stdin, err := server.StdinPipe()
	check.OK(t, err)
	defer func() { _ = stdin.Close() }()
	stdout, err := server.StdoutPipe()
	check.OK(t, err)
	check.OK(t, server.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	check.OK(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	check.OK(t, err)
	if fields := stat(fmt.Sprintf("/proc/%d/stat", pid)); fields == nil {
		t.Fatal("there is no child")
	}
	check.OK(t, server.Process.Kill())
	_ = server.Wait()
	check.Eventually(t, "the child has ended", func() bool {
		fields := stat(fmt.Sprintf("/proc/%d/stat", pid))
		return fields == nil || fields[0] == "Z" // ended, but the process that inherited it has not waited for it yet
	})
}

func TestChildRefusesWhatIsNoTask(t *testing.T) {
	for name, input := range map[string]string{"text": "hello, world\n", "short": "\x00\x00\x00\x01x", "cut": "\x00\x00\x00\x20x", "a length only": "\x00\x00\x00\x20", "half a length": "\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program, Argument)
			cmd.Stdin = strings.NewReader(input)
			out, err := cmd.Output()
			check.Equal(t, "answer", string(out), string(appendFrame(nil, []byte(ready))))
			check.ErrorSays(t, err, "exit status 1")
		})
	}
}
