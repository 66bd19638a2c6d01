package cli

import (
	"bytes"
	"net"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// losing lets a command reach the database through a proxy that passes on what the first message with
// the marker says, and no answer to it or anything that follows.
func losing(t *testing.T, db []string, marker string) []string {
	t.Helper()
	target, err := url.Parse(db[1])
	check.OK(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", target.Host)
			if err != nil {
				_ = from.Close()
				return
			}
			go pipe(from, to)
			go func() {
				if lose(to, from, marker) {
					_ = l.Close()
				}
			}()
		}
	}()
	return []string{"--mongodb-uri", "mongodb://" + l.Addr().String() + "/?directConnection=true", "--mongodb-database", db[3]}
}

// lose passes on messages until one has the marker: then the sender is cut off before the answer, which
// the database gives to no one.
func lose(to, from net.Conn, marker string) (lost bool) {
	defer func() { _ = from.Close() }()
	for b := make([]byte, 1<<16); ; {
		n, err := from.Read(b)
		if err != nil {
			_ = to.Close()
			return false
		}
		if lost = bytes.Contains(b[:n], []byte(marker)); lost {
			_ = from.Close()
		}
		if _, err := to.Write(b[:n]); err != nil || lost {
			// The database reads what it got, and closes the connection when it cannot answer.
			_ = to.(*net.TCPConn).CloseWrite()
			return lost
		}
	}
}

// wireCommand is how a message of the database protocol names a command on a collection.
func wireCommand(name, collection string) string {
	return "\x02" + name + "\x00" + string([]byte{byte(len(collection) + 1), 0, 0, 0}) + collection + "\x00"
}

// A change was made, and its answer was lost: the command says that it may have been made, and what to do.
func TestUnansweredChanges(t *testing.T) {
	db, _ := databaseWithShop(t)
	const password = "correct horse battery staple"
	on := func(db []string, args ...string) []string { return append(args, db...) }
	addUsers(t, db, "bob")
	for _, test := range []struct {
		args        []string
		stdin       string
		marker      string
		says        string
		then        []string // what shows that it was made
		shows       string
		shownStatus int
	}{
		{
			args: []string{"client", "create", "web"}, marker: wireCommand("insert", "trail"),
			says: "the client may have been created: check with oauth-server client show 'web'; its generated secret is lost: get a new one with client rotate-secret 'web'",
			then: []string{"client", "show", "web"}, shows: "web",
		},
		{
			args: []string{"client", "rotate-secret", "shop", "--overlap", "1h"}, marker: wireCommand("insert", "trail"),
			says: "the client may have been changed: check with oauth-server client show 'shop'; a new secret is lost",
			then: []string{"client", "show", "shop"}, shows: "former_secret_until",
		},
		{
			args: []string{"client", "delete", "shop"}, marker: wireCommand("insert", "trail"),
			says: "the client may have been deleted: check with oauth-server client show 'shop'",
			then: []string{"client", "show", "shop"}, shows: "does not exist", shownStatus: command.ExitFailed,
		},
		{
			args: []string{"user", "create", "ada", "--password-stdin"}, stdin: password, marker: wireCommand("insert", "trail"),
			says: "the user may have been created: check with oauth-server user show",
			then: []string{"user", "list"}, shows: "ada",
		},
		{
			args: []string{"user", "passwd", "bob", "--password-stdin"}, stdin: "another " + password, marker: wireCommand("insert", "trail"),
			says: `the user "bob" may have been changed: it is safe to run the command again`,
			then: []string{"user", "list"}, shows: "bob",
		},
		{
			args: []string{"user", "delete", "ada"}, marker: wireCommand("insert", "trail"),
			says: `the user may have been deleted: check with oauth-server user show 'ada'`,
			then: []string{"user", "delete", "ada"}, shows: `user "ada" does not exist`, shownStatus: command.ExitFailed,
		},
	} {
		name := strings.Join(test.args[:2], " ")
		stdout, stderr, status := run(t, test.stdin, on(losing(t, db, test.marker), test.args...)...)
		if status != command.ExitFailed || stdout != "" || !strings.Contains(stderr, test.says) {
			t.Errorf("%s: status %d, %q, %s\nwant that it says %s", name, status, stdout, stderr, test.says)
		}
		check.Eventually(t, name+" is made", func() bool {
			stdout, stderr, status := run(t, "", on(db, test.then...)...)
			return status == test.shownStatus && strings.Contains(stdout+stderr, test.shows)
		})
	}
	// What the store refuses is no such case.
	_, stderr, _ := run(t, "", on(db, "client", "create", "web")...)
	if withoutPlace(stderr) != "oauth-server: client \"web\" already exists\n" {
		t.Errorf("a client that exists: %s", stderr)
	}
}
