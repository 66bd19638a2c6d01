//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/testworld"
)

// step is a command of a page and what stands below it.
type step struct {
	command string
	want    []string
}

// TestOperatingDoc runs every command of docs/operating.md in one shell, in its
// order, and compares what it prints with what the page shows.
func TestOperatingDoc(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the page needs %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile("../../docs/operating.md")
	check.OK(t, err)
	clients, operators := testworld.FreeAddress(t), testworld.FreeAddress(t)
	page := strings.NewReplacer("127.0.0.1:9096", clients, "127.0.0.1:9097", operators).Replace(string(text))
	dir := t.TempDir()
	writeConfig(t, page, dir)
	steps := stepsOf(t, page)
	<-awayFromTheFrameEnd()
	outputs := runSteps(t, dir, operators, clients, steps)
	for i, s := range steps {
		if i >= len(outputs) {
			t.Fatalf("the shell ended before: %s", s.command)
		}
		if !matches(s.want, outputs[i]) {
			t.Errorf("$ %s\nprinted:\n%s\nthe page shows:\n%s", s.command, strings.Join(outputs[i], "\n"), strings.Join(s.want, "\n"))
		}
	}
}

var fences = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// writeConfig writes the file that the page shows.
func writeConfig(t *testing.T, page, dir string) {
	t.Helper()
	for _, m := range fences.FindAllStringSubmatch(page, -1) {
		if m[1] == "yaml" {
			check.OK(t, os.WriteFile(filepath.Join(dir, "oauth-server.yaml"), []byte(m[2]), 0o600))
			return
		}
	}
	t.Fatal("the page shows no configuration")
}

// stepsOf takes the commands out of the page. A command that stood in a block
// of another kind would not be run, so there must be none.
func stepsOf(t *testing.T, page string) (steps []step) {
	t.Helper()
	for _, m := range fences.FindAllStringSubmatch(page, -1) {
		if m[1] == "sh" || m[1] == "bash" || m[1] == "" {
			t.Errorf("this block is not run:\n%s", m[2])
		}
		if m[1] != "console" {
			continue
		}
		for line := range strings.Lines(m[2]) {
			line = strings.TrimRight(line, "\n")
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				steps = append(steps, step{command: command})
				continue
			}
			last := &steps[len(steps)-1]
			last.want = append(last.want, line)
		}
	}
	return steps
}

// awayFromTheFrameEnd is ready once the minute in which the page's requests are
// counted has enough left of it, so that its figures come out whole.
func awayFromTheFrameEnd() <-chan time.Time {
	const needed = 20 * time.Second
	left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))
	if left >= needed {
		return time.After(0)
	}
	return time.After(left + 100*time.Millisecond)
}

const marker = "@@@ next @@@"

// runSteps runs the commands in one shell and returns what each printed, with
// its exit status below it if that is not 0.
func runSteps(t *testing.T, dir, operators, clients string, steps []step) (outputs [][]string) {
	t.Helper()
	var script strings.Builder
	for _, s := range steps {
		script.WriteString(s.command + "\nstatus=$?; [ $status = 0 ] || echo \"[$status]\"\necho '" + marker + "'\n")
	}
	bash := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	bash.Dir = dir
	bash.Env = append(os.Environ(), beProgram+"=1", noDrain, "PATH="+programOnPath(t)+":"+os.Getenv("PATH"),
		"XDG_CACHE_HOME="+dir, "HOME="+dir, limitsAt+"=http://"+operators, "OAUTH_ISSUER=http://"+clients)
	var out bytes.Buffer
	bash.Stdout, bash.Stderr = &out, &out
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that the server of the page ends with it
	bash.Cancel = func() error { return syscall.Kill(-bash.Process.Pid, syscall.SIGKILL) }
	if err := bash.Run(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "server.log"))
		t.Logf("the shell: %v\n%s\nserver:\n%s", err, out.String(), log)
	}
	for part := range strings.SplitSeq(out.String(), marker+"\n") {
		outputs = append(outputs, strings.Split(strings.TrimSuffix(part, "\n"), "\n"))
	}
	return outputs
}

// matches compares what was printed with what the page shows. There … stands
// for anything, a line of it alone for any lines, and spaces are not counted.
func matches(want, got []string) bool {
	pattern := make([]string, len(want))
	for i, line := range want {
		parts := strings.Split(strings.Join(strings.Fields(line), " "), "…")
		for j := range parts {
			parts[j] = regexp.QuoteMeta(parts[j])
		}
		pattern[i] = strings.Join(parts, ".*")
		if line == "…" {
			pattern[i] = "(.*\n?)*"
		}
	}
	lines := make([]string, len(got))
	for i, line := range got {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	expr := "^" + strings.Join(pattern, "\n") + "$"
	return regexp.MustCompile(expr).MatchString(strings.Join(lines, "\n"))
}

func TestMatches(t *testing.T) {
	for i, tt := range []struct {
		want, got string
		is        bool
	}{
		{"a  b", "a b ", true},
		{"a … c", "a b x c", true},
		{"a … c", "a b x d", false},
		{"a\n…\nd", "a\nb\nc\nd", true},
		{"a", "a\nb", false},
		{"", "", true},
		{"", "x", false},
		{"(1.5)", "(1.5)", true},
		{"1.5", "125", false},
	} {
		if got := matches(strings.Split(tt.want, "\n"), strings.Split(tt.got, "\n")); got != tt.is {
			t.Errorf("%s: %q and %q: %v", strconv.Itoa(i), tt.want, tt.got, got)
		}
	}
}
