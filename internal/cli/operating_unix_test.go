//go:build unix

package cli

import (
	"bufio"
	"context"
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
)

// step is a command of a page and what stands below it, or something that the test does.
type step struct {
	command string
	want    []string
	does    string // instead of a command
}

// operatingPages are pages that are one example together.
var operatingPages = []string{"rollout.md", "operating.md", "deployment.md", "troubleshooting.md"}

// notRun is how many blocks of these pages no test runs: what they need is not here. A change that
// adds one changes this number, so that none is left out by accident.
const notRun = 15

// TestOperatingDoc runs every command of the pages in one shell, in their
// order, and compares what it prints with what the page shows. Where a page has a
// comment "test: …", it does that (pageCluster).
func TestOperatingDoc(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, tool := range []string{"bash", "curl", "sed", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the page needs %s: %v", tool, err)
		}
	}
	c := newPageCluster(t)
	var page string
	for _, name := range operatingPages {
		text, err := os.ReadFile(filepath.Join("../../docs", name))
		check.OK(t, err)
		if name == "rollout.md" {
			text = []byte(without(t, string(text), "At a gateway", 3))
		}
		page += c.places.Replace(string(text)) + "\n"
	}
	<-awayFromTheFrameEnd(time.Minute)
	c.runPage(page, notRun)
}

// runPage runs the commands of the page and compares what they print with what it shows.
func (c *pageCluster) runPage(page string, notRun int) {
	c.t.Helper()
	steps := c.stepsOf(page, notRun)
	outputs := c.runSteps(steps)
	for i, s := range steps {
		if i >= len(outputs) {
			c.t.Fatalf("the shell ended before: %s%s", s.command, s.does)
		}
		if !matches(s.want, outputs[i]) {
			c.t.Errorf("$ %s\nprinted:\n%s\nthe page shows:\n%s", s.command, strings.Join(outputs[i], "\n"), strings.Join(s.want, "\n"))
		}
	}
}

// parts are the blocks of a page, and its comments for the test.
var parts = regexp.MustCompile("(?ms)^( *)```([a-z]*)( not-run)?\n(.*?)^ *```$|^<!-- test: ([^\n]*) -->$")

// fileName is in the first line of a block that shows a file.
var fileName = regexp.MustCompile(`^# ([a-z.-]+\.yaml)\n`)

// stepsOf takes the commands out of the page, and writes the files that it shows. A command that stood in
// a block of another kind would not be run, so there must be none.
func (c *pageCluster) stepsOf(page string, notRun int) (steps []step) {
	c.t.Helper()
	skipped := 0
	for _, m := range parts.FindAllStringSubmatch(page, -1) {
		indent, kind, text, does := m[1], m[2], m[4], m[5]
		switch file := fileName.FindStringSubmatch(text); {
		case does != "":
			steps = append(steps, step{does: does})
		case m[3] != "":
			skipped++
			c.t.Logf("not run:\n%s", text)
		case kind == "console" && indent == "":
			steps = append(steps, commandsOf(text)...)
		case kind == "yaml" && file != nil:
			check.OK(c.t, os.WriteFile(filepath.Join(c.dir, file[1]), []byte(text), 0o600))
		case kind == "sh" || kind == "bash" || kind == "console" || kind == "" || strings.Contains("\n"+text, "\n$ "):
			c.t.Errorf("this block is not run:\n%s", text)
		}
	}
	check.Equal(c.t, "blocks that are not run", skipped, notRun)
	return steps
}

func commandsOf(block string) (steps []step) {
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: command})
			continue
		}
		last := &steps[len(steps)-1]
		last.want = append(last.want, line)
	}
	return steps
}

// awayFromTheFrameEnd is ready once the frame in which the page's requests are
// counted has enough left of it, so that its figures come out whole.
func awayFromTheFrameEnd(frame time.Duration) <-chan time.Time {
	const needed = 30 * time.Second
	left := time.Until(time.Now().Truncate(frame).Add(frame))
	if left >= needed {
		return time.After(0)
	}
	return time.After(left + 100*time.Millisecond)
}

// What the shell prints after a command, and where the test has something to do, until which it waits.
const (
	marker  = "@@@ next @@@"
	waiting = "@@@ waiting @@@"
)

// shellLimit ends a shell that waits for something that does not come.
const shellLimit = 4 * time.Minute

// runSteps runs the commands in one shell and returns what each printed, with
// its exit status below it if that is not 0.
func (c *pageCluster) runSteps(steps []step) (outputs [][]string) {
	c.t.Helper()
	var script strings.Builder
	for _, s := range steps {
		if s.does != "" {
			script.WriteString("echo '" + waiting + "'; read -r _ <&3\n")
		}
		script.WriteString(s.command + "\nstatus=$?; [ $status = 0 ] || echo \"[$status]\"\necho '" + marker + "'\n")
	}
	resume, printed := c.shell(script.String())
	var output, all []string
	for printed.Scan() {
		line, ended := strings.CutSuffix(printed.Text(), marker)
		switch all = append(all, line); {
		case line == waiting:
			c.do(steps[len(outputs)].does)
			_, err := resume.WriteString("\n")
			check.OK(c.t, err)
			continue
		case line != "" || !ended:
			output = append(output, line)
		}
		if ended {
			if outputs, output = append(outputs, output), nil; len(outputs) == len(steps) {
				return outputs
			}
		}
	}
	log, _ := os.ReadFile(filepath.Join(c.dir, "server.log"))
	c.t.Logf("the shell ended:\n%s\nserver:\n%s", strings.Join(all, "\n"), log)
	return outputs
}

// shell starts a shell, which ends with the test, and all that it has started with it. A line on resume
// is what it waits for.
func (c *pageCluster) shell(script string) (resume *os.File, printed *bufio.Scanner) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), shellLimit)
	bash := exec.CommandContext(ctx, "bash", "-c", script)
	bash.Dir = c.dir
	bash.Env = append(os.Environ(), beProgram+"=1", "OAUTH_DRAIN_DELAY=1500ms", "OAUTH_SYNC_INTERVAL=200ms",
		"PATH="+programOnPath(c.t)+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+c.dir, "HOME="+c.dir,
		limitsAt+"=http://"+c.at["9097"], "OAUTH_ISSUER="+c.issuer)
	output, out, err := os.Pipe()
	check.OK(c.t, err)
	in, resume, err := os.Pipe()
	check.OK(c.t, err)
	bash.Stdout, bash.Stderr, bash.ExtraFiles = out, out, []*os.File{in}
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that the servers of the page end with it
	bash.Cancel = func() error { return syscall.Kill(-bash.Process.Pid, syscall.SIGKILL) }
	check.OK(c.t, bash.Start())
	_, _ = out.Close(), in.Close()
	ended := make(chan struct{})
	go func() {
		_ = bash.Wait()
		_ = bash.Cancel() // what is left of its group would keep the output open
		close(ended)
	}()
	c.t.Cleanup(func() {
		cancel()
		<-ended
		_, _ = output.Close(), resume.Close()
	})
	printed = bufio.NewScanner(output)
	printed.Buffer(nil, 1<<20)
	return resume, printed
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
