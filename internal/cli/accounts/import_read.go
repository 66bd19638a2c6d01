package accounts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/strict"
)

// maxImportLine is the maximum length of a line, in bytes.
const maxImportLine = 64 << 10

// importLine is a valid line.
type importLine struct {
	number int
	name   string
	store  func(context.Context, *adminclient.Client) error
}

// importProblem is one problem of a line.
type importProblem struct {
	line int
	text string // includes the line number
}

// problemOf returns a problem with this line number. It replaces the "line 1" that the decoder of
// the single JSON value reports.
func problemOf(line int, err error) importProblem {
	text := strings.TrimSuffix(strings.TrimSpace(err.Error()), ", first in line 1")
	if inside, ok := strings.CutPrefix(text, "line 1, "); ok { // column …
		return importProblem{line, fmt.Sprintf("line %d, %s", line, inside)}
	}
	return importProblem{line, fmt.Sprintf("line %d: %s", line, text)}
}

// refused records the problems of a line. The error has one problem per line of text.
func (i *importing) refused(line int, err error) {
	for text := range strings.Lines(err.Error()) {
		i.problems = append(i.problems, problemOf(line, errors.New(text)))
	}
}

// readFile reads and checks all lines of a file, or of standard input.
func (i *importing) readFile(name string) error {
	if name == "-" {
		return i.readAll(i.In)
	}
	f, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return command.Usagef("%w", err)
	}
	defer func() { _ = f.Close() }()
	return i.readAll(f)
}

// byteOrderMark is the UTF-8 byte order mark, which some editors and programs write.
var byteOrderMark = []byte("\ufeff")

func (i *importing) readAll(in io.Reader) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 0, maxImportLine), maxImportLine)
	number, seen := 0, map[string]int{}
	for scanner.Scan() {
		number++
		text := scanner.Bytes()
		if number == 1 {
			text = bytes.TrimPrefix(text, byteOrderMark)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		i.read++
		v, err := strict.ParseJSON(text)
		if err != nil {
			i.refused(number, err)
			continue
		}
		name, store, err := i.readLine(v)
		if former, is := seen[name]; err == nil && is {
			err = fmt.Errorf("line %d has the same name", former)
		}
		if err != nil {
			i.refused(number, err)
			continue
		}
		seen[name] = number
		i.lines = append(i.lines, importLine{number, name, store})
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read line %d: %w; a line has at most %d bytes", number+1, err, maxImportLine)
	}
	return nil
}

// refuse removes the lines with names that are taken in the store.
func (i *importing) refuse(taken map[string]string) {
	i.lines = slices.DeleteFunc(i.lines, func(l importLine) bool {
		why, is := taken[l.name]
		if is {
			i.refused(l.number, errors.New(why))
		}
		return is
	})
	slices.SortStableFunc(i.problems, func(a, b importProblem) int { return a.line - b.line })
}

// takenNames maps each taken name to its holder: a client or a user. A user also takes the current
// normalized form of the name.
func takenNames(ctx context.Context, api *adminclient.Client) (map[string]string, error) {
	taken := map[string]string{}
	users, err := listUsers(ctx, api, "")
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		taken[u.Username] = "the user already exists"
		if canonical, err := username.Canonical(u.Username); err == nil {
			taken[canonical] = taken[u.Username]
		}
	}
	clients, unreadable, err := listClients(ctx, api, url.Values{})
	if err != nil {
		return nil, err
	}
	for i := range clients {
		taken[clients[i].ID] = "the client already exists"
	}
	for _, u := range unreadable {
		taken[u.ClientID] = "the client already exists"
	}
	return taken, nil
}
