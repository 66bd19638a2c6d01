package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func testDurability(t *testing.T, target Target) {
	t.Helper()
	t.Run("everything is there after a reopen", func(t *testing.T) { reopen(t, target) })
	t.Run("what was answered is there after kill -9", func(t *testing.T) { killed(t, target) })
	t.Run("closing answers what is under way", func(t *testing.T) { closeDrains(t, target) })
}

func reopen(t *testing.T, target Target) {
	t.Helper()
	ctx, location := t.Context(), target.Location(t)
	b, err := target.Open(ctx, location)
	succeed(t, "open", err)
	first := family("code")
	second := later(first, 2)
	succeed(t, "write", errors.Join(
		b.CreateUser(ctx, user("u")),
		b.CreateCode(ctx, code("code")), b.RedeemCode(ctx, secret.DigestOf("code"), &first), b.RotateFamily(ctx, second),
		b.CreateSession(ctx, session("s"), mostSessions), b.Revoke(ctx, "family", Epoch)))
	w := adding("me", 7)
	w.Pruned = 3
	counted := apply(t, b, counterID("u"), w)
	succeed(t, "close", b.Close())

	b = target.open(t, location)
	u, err := b.User(ctx, "u")
	succeed(t, "user", err)
	equal(t, "user", user("u"), u)
	failWith(t, "redeem again", grants.ErrClaimed, b.RedeemCode(ctx, secret.DigestOf("code"), nil))
	readFamily(t, b, second)
	s, err := b.Session(ctx, session("s").Digest)
	succeed(t, "session", err)
	equal(t, "session", session("s"), s)
	if !revoked(t, b, "family") {
		t.Error("the revocation is gone")
	}
	equal(t, "counter", counted, load(t, b, counterID("u")))
}

func closeDrains(t *testing.T, target Target) {
	t.Helper()
	location := target.Location(t)
	b, err := target.Open(t.Context(), location)
	succeed(t, "open", err)
	const n = 64
	answers := make([]error, n)
	closed := make(chan error, 1)
	together(n, func(i int) {
		if i == n/2 {
			closed <- b.Close()
		}
		answers[i] = b.CreateCode(t.Context(), code(fmt.Sprintf("code %d", i)))
	})
	succeed(t, "close", <-closed)
	if err := b.CreateCode(t.Context(), code("late")); err == nil {
		t.Error("a closed store took a write")
	}
	b = target.open(t, location)
	for i, answer := range answers {
		if answer != nil {
			continue
		}
		_, err := b.Code(t.Context(), secret.DigestOf(fmt.Sprintf("code %d", i)))
		succeed(t, "look for what was acknowledged", err)
	}
}

// childEnv carries the location to the child process.
const childEnv = "STORETEST_CHILD_LOCATION"

// Child returns at once, unless this process was started by the suite as the one to be killed; then it
// writes until that happens.
func Child(open func(ctx context.Context, location string) (Backend, error)) {
	location, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	b, err := open(context.Background(), location)
	if err == nil {
		err = writeForever(context.Background(), b)
	}
	fmt.Fprintln(os.Stderr, "child:", err)
	os.Exit(1)
}

const childWriters = 8

// rotations is how often the family of each code is rotated before the next code.
const rotations = 3

// writeForever creates codes, redeems them and rotates their families, and prints each on stdout once the
// store has returned.
func writeForever(ctx context.Context, b Backend) error {
	errs := make(chan error, childWriters)
	for w := range childWriters {
		go func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d/%d", w, i)
				if err := b.CreateCode(ctx, code(name)); err != nil {
					errs <- err
					return
				}
				fmt.Printf("0 %s\n", name)
				first := family(name)
				if err := b.RedeemCode(ctx, first.Digest, &first); err != nil {
					errs <- err
					return
				}
				fmt.Printf("1 %s\n", name)
				for g := uint32(2); g < 2+rotations; g++ {
					if err := b.RotateFamily(ctx, later(first, g)); err != nil {
						errs <- err
						return
					}
					fmt.Printf("%d %s\n", g, name)
				}
			}
		}()
	}
	return <-errs
}

func killed(t *testing.T, target Target) {
	t.Helper()
	location := target.Location(t)
	acknowledged := map[string]int{} // the last generation of each; 0 is a code
	for _, line := range runAndKill(t, location, 300) {
		generation, name, _ := strings.Cut(line, " ")
		g, err := strconv.Atoi(generation)
		succeed(t, "parse "+line, err)
		acknowledged[name] = g
	}
	b := target.open(t, location)
	for name, least := range acknowledged {
		c, err := b.Code(t.Context(), secret.DigestOf(name))
		succeed(t, "look for acknowledged "+name, err)
		f, err := b.Family(t.Context(), secret.DigestOf(name))
		if c.Claimed != (err == nil) {
			t.Errorf("%s: claimed is %v, but its family: %v", name, c.Claimed, err)
		}
		if got := int(f.Generation); got < least || got > least+1 {
			t.Errorf("%s: the family is of generation %d, and %d was acknowledged", name, got, least)
		}
		if f.Generation > 0 {
			first := family(name)
			if f.Generation > 1 {
				first = later(first, f.Generation)
			}
			equal(t, "family", first, f)
		}
	}
}

// runAndKill starts the child, kills it after that many answers and returns all that it has printed.
func runAndKill(t *testing.T, location string, answers int) (acknowledged []string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+location)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	succeed(t, "pipe", err)
	succeed(t, "start the child", child.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		acknowledged = append(acknowledged, lines.Text())
		if len(acknowledged) == answers {
			succeed(t, "kill", child.Process.Kill())
		}
	}
	if err := child.Wait(); err == nil || len(acknowledged) < answers {
		t.Fatalf("the child ended by itself after %d answers: %v", len(acknowledged), err)
	}
	return acknowledged
}
