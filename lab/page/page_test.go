package page_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/page"
)

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1234567: "1,234,567", -1500: "-1,500", 12.345: "12.3", 0.01234: "0.0123", 100: "100", 1.5: "1.5", math.Inf(1): "–", math.NaN(): "–",
	} {
		if got := page.Number(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
}

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	check.OK(t, os.WriteFile(file, []byte("before\n<!-- begin a -->\nold\n<!-- end a -->\n<!-- begin b -->\nb\n<!-- end b -->\n"), 0o600))
	for range 2 {
		check.OK(t, page.Write(file, "a", "\nnew\n\n"))
		got, err := os.ReadFile(file)
		check.OK(t, err)
		check.Equal(t, "page", string(got), "before\n<!-- begin a -->\n\nnew\n\n<!-- end a -->\n<!-- begin b -->\nb\n<!-- end b -->\n")
	}
	text, err := page.Read(file, "a")
	check.OK(t, err)
	check.Equal(t, "text", text, "\n\nnew\n\n")
	check.ErrorSays(t, page.Write(file, "c", "new"), "there is no section")
}
