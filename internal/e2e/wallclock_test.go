package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// wallSteps are what the wall clock of a process can be wrong by in these tests.
var wallSteps = []time.Duration{0, 5 * time.Minute, time.Hour, -5 * time.Minute, -time.Hour, -70 * time.Second}

// wallClock is the wall clock of one process, as an administrator sets it: every
// reading of it in the process is shifted, and monotonic time is not.
type wallClock struct {
	t    *testing.T
	file *os.File // one byte, an index of wallSteps; the process reads it as descriptor 3
}

func newWallClock(t *testing.T) *wallClock {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "wall"))
	check.OK(t, err)
	t.Cleanup(func() { _ = file.Close() })
	w := &wallClock{t: t, file: file}
	w.set(0)
	return w
}

// set makes the clock wrong by one of wallSteps.
func (w *wallClock) set(by time.Duration) {
	w.t.Helper()
	if _, err := w.file.WriteAt([]byte{byte(slices.Index(wallSteps, by))}, 0); err != nil {
		w.t.Fatal(err)
	}
}

// wear gives a server that has not started a wall clock of its own.
func (w *wallClock) wear(m *member) {
	w.t.Helper()
	if runtime.GOOS != "linux" {
		w.t.Skip("the wall clock of one process can be set on Linux only")
	}
	path, err := steppable()
	check.OK(w.t, err)
	m.wall, m.binary, m.files = w, path, []*os.File{w.file}
}

// steppable builds the command with package time changed so that the wall clock can be set, once, and
// returns its path. Only package time is compiled anew; the linker takes it instead of the usual one.
// It has no race detector; other tests run the same code with one.
var steppable = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // beside other tests
	defer cancel()
	dir := filepath.Dir(binary)
	changed, err := compileTime(ctx, dir)
	if err != nil {
		return "", err
	}
	return linkWith(ctx, dir, changed)
})

// linkWith links the command with another object file of package time and returns its path.
func linkWith(ctx context.Context, dir, changed string) (path string, err error) {
	packages, err := goTool(ctx, "list", "-export", "-deps",
		"-f", "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}", mainPackage)
	if err != nil {
		return "", err
	}
	lines := strings.Split(packages, "\n")
	_, program, _ := strings.Cut(lines[len(lines)-1], "=") // -deps lists imports first
	for i := range lines {
		if strings.HasPrefix(lines[i], "packagefile time=") {
			lines[i] = "packagefile time=" + changed
		}
	}
	config := filepath.Join(dir, "importcfg")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "steppable")
	_, err = goTool(ctx, "tool", "link", "-importcfg", config, "-s", "-w", "-o", path, program)
	return path, err
}

// compileTime compiles the changed package time and returns the object file. The object names the
// files as the usual one does, because the linker compares all that packages export, with positions.
func compileTime(ctx context.Context, dir string) (object string, err error) {
	overlay, err := newOverlay(ctx, dir)
	if err != nil {
		return "", err
	}
	return goTool(ctx, "list", "-export", "-overlay", overlay, "-gcflags=time=-trimpath="+dir+"=>$GOROOT/src/time",
		"-f", "{{.Export}}", "time")
}

// newOverlay changes the one place of package time that reads the wall clock, and
// returns the file for -overlay. The reading may be on the stack of the scheduler, where
// neither memory can be allocated nor a system call made that the scheduler hears of.
func newOverlay(ctx context.Context, dir string) (file string, err error) {
	root, err := goTool(ctx, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	var seconds []string
	for _, step := range wallSteps {
		seconds = append(seconds, fmt.Sprint(int64(step.Seconds())))
	}
	changes := map[string][]string{ // from, to, and so on
		"time.go": {
			"sec, nsec, mono := runtimeNow()\n",
			"sec, nsec, mono := runtimeNow(); step, _ := read(3, nil); sec += [...]int64{" + strings.Join(seconds, ", ") + "}[step]\n",
		},
		"sys_unix.go": {
			"\t\"syscall\"\n", "\t\"syscall\"; \"unsafe\"\n",
			"func read(fd uintptr, buf []byte) (int, error) {\n",
			"func read(fd uintptr, buf []byte) (int, error) { if buf == nil { step := byte(0); " +
				"syscall.RawSyscall6(syscall.SYS_PREAD64, fd, uintptr(unsafe.Pointer(&step)), 1, 0, 0, 0); return int(step), nil }\n",
		},
	}
	replace := map[string]string{}
	for name, change := range changes {
		original := filepath.Join(root, "src", "time", name)
		text, err := os.ReadFile(original)
		if err != nil {
			return "", err
		}
		for pair := range slices.Chunk(change, 2) {
			if bytes.Count(text, []byte(pair[0])) != 1 {
				return "", fmt.Errorf("%s is not as expected: %q", original, pair[0])
			}
			text = bytes.Replace(text, []byte(pair[0]), []byte(pair[1]), 1)
		}
		changed := filepath.Join(dir, name)
		if err := os.WriteFile(changed, text, 0o600); err != nil {
			return "", err
		}
		replace[original] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}
