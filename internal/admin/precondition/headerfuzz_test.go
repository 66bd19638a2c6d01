package precondition

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// FuzzConditions: a change passes only with the current ETag, or with * if that is allowed.
func FuzzConditions(f *testing.F) {
	st := State{Version: 7}
	now, err := st.ETag()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(now, "", true)
	f.Add("*", "", false)
	f.Add("", "*", true)
	f.Add(`W/`+now, `"1-x", `+now, true)
	f.Add(`"a,b", *`, "", true)
	f.Fuzz(func(t *testing.T, match, noneMatch string, exists bool) {
		h := http.Header{}
		for name, value := range map[string]string{"If-Match": match, "If-None-Match": noneMatch} {
			if value != "" {
				h.Set(name, value)
			}
		}
		c := Of(h)
		passed := c.Given() && c.Check(State{Version: 7, Exists: exists}) == nil
		list := func(s string) []string {
			parts := strings.Split(s, ",")
			for i := range parts {
				parts[i] = strings.TrimSpace(parts[i])
			}
			return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		}
		matched := slices.Contains(list(match), now) || exists && slices.Contains(list(match), "*")
		refused := slices.Contains(list(noneMatch), now) || exists && slices.Contains(list(noneMatch), "*")
		want := !refused && (matched || len(list(match)) == 0 && len(list(noneMatch)) > 0)
		if passed != want {
			t.Errorf("If-Match %q, If-None-Match %q, exists %v: passed %v", match, noneMatch, exists, passed)
		}
	})
}
