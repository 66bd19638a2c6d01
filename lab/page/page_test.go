package page_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/lab/page"
)

const text = "before\n<!-- begin a -->\nold\n<!-- end a -->\nbetween\n<!-- begin b -->\nb\n<!-- end b -->\nafter\n"

func TestSectionIsReplaced(t *testing.T) {
	got, err := page.With(text, "a", "\nnew\n\n")
	if err != nil {
		t.Fatal(err)
	}
	const want = "before\n<!-- begin a -->\n\nnew\n\n<!-- end a -->\nbetween\n<!-- begin b -->\nb\n<!-- end b -->\nafter\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again, err := page.With(got, "a", "new"); err != nil || again != got {
		t.Errorf("the second time it is %q, %v", again, err)
	}
	if _, err := page.With(text, "c", "new"); err == nil {
		t.Error("a section that there is not was written")
	}
}

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
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := page.Write(file, "b", "new"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := page.With(text, "b", "new")
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if err := page.Write(file, "c", "new"); err == nil {
		t.Error("a section that there is not was written")
	}
}
