package cli

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestDemoLinesWork: every line that a demo prints works when it is pasted into a shell.
func TestDemoLinesWork(t *testing.T) {
	for _, tool := range []string{"curl", "sed", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the printed lines need %s: %v", tool, err)
		}
	}
	const token = `"access_token"`
	for demo, shows := range map[string]map[string]string{ // what a line shows, by the beginning of its title
		"serve": {
			"client_credentials": token, "password": token, "refresh_token": token, "authorization_code": token, "introspect": `"active":true`, "revoke": "HTTP 200",
			"rate limit": "", "the token command (": token, "the token command as a machine": token, "limits": "demo-busy",
		},
		"gateway": {
			"client_credentials": token, "wrong secrets": strings.Repeat("401 ", 12), "rate limit": "", "password": `"refresh_token"`,
			"everything else": `"token_endpoint"`, "limits": "demo-busy",
		},
	} {
		t.Run(demo, func(t *testing.T) {
			p := launch(t, demo, "--demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
			dir, commands := demoFiles(t, p)
			check.Equal(t, "logged", p.log.String(), "")
			path := programOnPath(t)
			who := &person{}
			if _, signIn, asked := strings.Cut(p.stdout.String(), "sign in as "); asked {
				_, err := fmt.Sscanf(signIn, "%s with the password %s", &who.name, &who.password)
				check.OK(t, err)
				who.password = strings.TrimSuffix(who.password, ".")
			}
			for _, c := range commands {
				t.Run(c[0], func(t *testing.T) {
					out := demoLine(t, who, path, c[1])
					for what, want := range shows {
						switch {
						case !strings.HasPrefix(c[0], what):
							continue
						case what == "rate limit":
							check.Equal(t, "ten tokens, and two refusals that say how long to wait: "+out, limitShown(out), true)
						default:
							has(t, out, want)
						}
						check.Equal(t, "it ends the line", strings.HasSuffix(out, "\n"), true)
						delete(shows, what)
					}
				})
			}
			check.Equal(t, "what no line shows", shows, map[string]string{})
			checkDemoText(t, p, path)
			p.stop(t)
			_, err := os.Stat(dir)
			check.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// demoFiles waits until a demo is printed, and returns its directory and the titles and
// commands there.
func demoFiles(t *testing.T, p *process) (dir string, commands [][2]string) {
	t.Helper()
	printed := regexp.MustCompile(`(?m)^\. '(.*)/env'$(?s:.*)to paste: .*/commands\n`)
	check.Eventually(t, "the demo is printed", func() bool { return printed.MatchString(p.stdout.String()) })
	dir = printed.FindStringSubmatch(p.stdout.String())[1]
	text, err := os.ReadFile(filepath.Join(dir, "commands"))
	check.OK(t, err)
	for _, m := range regexp.MustCompile(`(?m)^# (.*)\n(.*)\n`).FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, [2]string{m[1], m[2]})
	}
	return dir, commands
}

// checkDemoText: what a demo prints is short, and its commands work when they are pasted together, here
// after the limit was used up.
func checkDemoText(t *testing.T, p *process, path string) {
	t.Helper()
	text := p.stdout.String()
	check.Equal(t, "at most 12 lines", strings.Count(text, "\n") <= 12, true)
	for line := range strings.Lines(text) {
		check.Equal(t, "short enough: "+line, len(line) <= 100, true) // with the end of the line
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
	cmd.Env = append(os.Environ(), beProgram+"=1", "PATH="+path+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+t.TempDir())
	out, err := cmd.Output()
	check.OK(t, err, string(out))
	for _, want := range []string{`"access_token"`, "429 Too Many Requests", "demo-busy"} {
		check.Equal(t, "shown by the pasted commands: "+want, strings.Contains(string(out), want), true)
	}
}

// programOnPath makes a directory in which oauth-server is this program.
func programOnPath(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	check.OK(t, err)
	dir := t.TempDir()
	check.OK(t, os.Symlink(self, filepath.Join(dir, "oauth-server")))
	return dir
}

// demoLine runs a line in a shell that has the settings of another server, and returns what it prints.
func demoLine(t *testing.T, who *person, path, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), beProgram+"=1", "PATH="+path+":"+os.Getenv("PATH"),
		"OAUTH_ISSUER=https://id.example", "OAUTH_CLIENT_ID=ops", "OAUTH_CLIENT_SECRET=of-ops")
	if strings.Contains(line, "--grant authorization_code") {
		cmd.Stderr = who
	}
	out, err := cmd.Output()
	check.OK(t, err, line)
	return string(out)
}

// limitShown reports whether the answers to twelve requests show a limit of ten.
func limitShown(out string) bool {
	return strings.Count(out, "200 OK RateLimit: ") == 10 && strings.Count(out, "429 Too Many Requests") == 2 && strings.Count(out, "Retry-After: ") == 2
}

// person reads what a command says and, when it asks to open an address, signs
// in there and agrees, as a person with a browser would.
type person struct {
	name, password string
	read           string
	done           bool
}

var (
	askedToOpen = regexp.MustCompile(`(http://\S+/authorize\?\S+)\n`)
	bindingOf   = regexp.MustCompile(`name="binding" value="([^"]*)"`)
)

// Write implements io.Writer.
func (p *person) Write(text []byte) (int, error) {
	p.read += string(text)
	if m := askedToOpen.FindStringSubmatch(p.read); m != nil && !p.done {
		p.done = true
		if err := p.browse(m[1]); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

func (p *person) browse(address string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	origin, query, _ := strings.Cut(address, "/authorize?")
	page, err := post(browser, origin+"/sign-in", url.Values{
		"authorization": {query}, "username": {p.name}, "password": {p.password},
	})
	if err != nil {
		return err
	}
	binding := bindingOf.FindStringSubmatch(page)
	if binding == nil {
		return fmt.Errorf("no consent page after the sign-in: %s", page)
	}
	_, err = post(browser, origin+"/consent", url.Values{
		"authorization": {query}, "binding": {html.UnescapeString(binding[1])}, "decision": {"allow"},
	})
	return err
}

func post(browser *http.Client, address string, form url.Values) (page string, err error) {
	res, err := browser.PostForm(address, form)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}
