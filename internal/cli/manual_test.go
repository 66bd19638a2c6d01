package cli

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

var manualDir = flag.String("man", "", "keep the man pages in this directory")

// TestManual writes the man pages, one for each command, and checks them. make release keeps them. They
// are made by a test so that what makes them is no part of the server.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	if *manualDir != "" {
		dir = *manualDir
		check.OK(t, os.MkdirAll(dir, 0o755))
	}
	root, _ := newRoot(&command.Env{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	root.InitDefaultCompletionCmd()
	commands := documented(root)
	check.OK(t, doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "oauth-server", Manual: "User Commands"}, dir))
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	check.OK(t, err)
	check.Equal(t, "pages", len(pages), len(commands))
	for _, cmd := range commands {
		if cmd.HasParent() && cmd.Parent().Name() == "completion" {
			continue // cobra's own text
		}
		file := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		page, err := os.ReadFile(file)
		check.OK(t, err)
		readable := asManualsDo(string(page))
		check.OK(t, os.WriteFile(file, []byte(readable), 0o644))
		checkPage(t, cmd, readable)
	}
}

// documented prepares the command and those below it for their pages, and returns them.
func documented(cmd *cobra.Command) []*cobra.Command {
	cmd.DisableAutoGenTag = true
	cmd.Long = withBlocks(cmd.Long)
	cmd.InitDefaultHelpFlag()
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, documented(c)...)
		}
	}
	return all
}

// withBlocks indents what is indented in a help text so that Markdown keeps its lines.
func withBlocks(text string) string {
	var out strings.Builder
	within := false
	for line := range strings.Lines(text) {
		if indented := strings.HasPrefix(line, "  "); indented != within {
			out.WriteString("\n")
			within = indented
		}
		if within {
			line = "  " + line
		}
		out.WriteString(line)
	}
	return out.String()
}

// option is one in a page of cobra: its names, its default, and the text.
var option = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-.*\\fP)(\[?)=(.*?)\]?\n\t(.*)$`)

// asManualsDo sets the options as other manuals do: each with what it takes beside it, its text indented
// below it, and its default at the end. A hyphen is one that can be pasted into a shell.
func asManualsDo(page string) string {
	page = option.ReplaceAllStringFunc(page, func(text string) string {
		m := option.FindStringSubmatch(text)
		names, optional, byDefault, usage := m[1], m[2] != "", strings.Trim(m[3], `"`), m[4]
		switch {
		case optional && m[3] == "":
			names += "[=\\fIvalue\\fP]"
		case !optional:
			names += " \\fIvalue\\fP"
		}
		if byDefault != "" && byDefault != "[" && byDefault != "false" && !strings.Contains(usage, "(default") {
			usage += " (default " + byDefault + ")"
		}
		return ".TP\n" + names + "\n" + usage
	})
	var out strings.Builder
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, ".") {
			line = strings.ReplaceAll(line, "-", `\-`)
		}
		out.WriteString(line)
	}
	return out.String()
}

// escapes are those of roff in a page: what is left of a word without them is what a reader sees.
var escapes = regexp.MustCompile(`\\f[BIPR]|\\`)

// checkPage checks that a page has its sections, every flag, and the words of the help: the text is read
// as Markdown on its way, which must not swallow any.
func checkPage(t *testing.T, cmd *cobra.Command, page string) {
	t.Helper()
	has(t, page, ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION")
	seen := escapes.ReplaceAllString(page, "")
	words := map[string]bool{}
	for word := range strings.FieldsSeq(seen) {
		words[word] = true
	}
	for word := range strings.FieldsSeq(cmd.Short + " " + cmd.Long + " " + cmd.Example) {
		if !words[word] && !words[strings.Trim(word, "<>`")] {
			t.Errorf("%s: the page has lost %q", cmd.CommandPath(), word)
		}
	}
	for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
		if name := regexp.MustCompile(`--[a-z-]+`).FindString(line); !strings.Contains(seen, name) {
			t.Errorf("%s: the page does not have %s", cmd.CommandPath(), name)
		}
	}
}
