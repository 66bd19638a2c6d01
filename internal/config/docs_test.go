package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// The page for operators lists every option of the program.
func TestPageListsEveryOption(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	check.OK(t, err)
	var table strings.Builder
	table.WriteString("| field | flag | default | meaning |\n|---|---|---|---|\n")
	for _, o := range Options() {
		byDefault := ""
		if d := o.Default(); d != "" {
			byDefault = "`" + d + "`"
		}
		fmt.Fprintf(&table, "| `%s` | `--%s` | %s | %s |\n", o.Path, o.Name, byDefault, o.Usage)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("docs/configuration.md should hold this table:\n%s", table.String())
	}
}

// TestBoundsOfOptions: a range tag has two numbers or durations, and a default is among the values.
func TestBoundsOfOptions(t *testing.T) {
	for _, o := range Options() {
		least, most, bounded := strings.Cut(o.bounds, " ")
		if bounded && !(bound(least) < bound(most)) || bound(least) == 0 && strings.Trim(least, "0s") != "" {
			t.Errorf("%s: range %q", o.Path, o.bounds)
		}
		if values := o.Values(); values != nil && !slices.Contains(values, o.Default()) {
			t.Errorf("%s: the default %q is not one of %q", o.Path, o.Default(), values)
		}
	}
}

// TestSecretsAreRedacted: no option for a secret is printed.
func TestSecretsAreRedacted(t *testing.T) {
	for _, o := range Options() {
		if strings.HasSuffix(o.Path, "secret") && o.redact != "all" {
			t.Errorf("%s is printed", o.Path)
		}
	}
}
