package page_test

import (
	"testing"

	"oauth-server/benchmarks/page"
)

func TestWith(t *testing.T) {
	t.Parallel()
	const before = "# Page\n<!-- begin a -->\nold\n<!-- end a -->\n<!-- begin b -->\nkept\n<!-- end b -->\n"
	got, err := page.With(before, "a", "\nnew\n\n")
	if want := "# Page\n<!-- begin a -->\n\nnew\n\n<!-- end a -->\n<!-- begin b -->\nkept\n<!-- end b -->\n"; got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, section := range []string{"c", "", "a -->\nold\n<!-- end a"} {
		if got, err := page.With(before, section, "new"); err == nil {
			t.Errorf("section %q gives %q", section, got)
		}
	}
}
