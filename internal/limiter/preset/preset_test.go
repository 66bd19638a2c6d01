package preset_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/preset"
	"oauth-server/internal/ratelimit"
)

// TestPresetsCanBeSet: each can be given to a client and made a tier of, and says where it is from.
func TestPresetsCanBeSet(t *testing.T) {
	var names []string
	for _, p := range preset.All() {
		names = append(names, p.Name)
		check.OK(t, clientcfg.ValidateTierName(p.Name))
		policy := ratelimit.Policy{User: p.User, Client: p.Client, Total: p.Total}
		check.OK(t, policy.Validate())
		check.Equal(t, p.Name+" has limits", len(p.User)+len(p.Client)+len(p.Total) > 0, true)
		check.Equal(t, p.Name+" is about something", strings.HasSuffix(p.About, "."), true)
		page, err := url.Parse(p.Page)
		check.OK(t, err)
		check.Equal(t, p.Name+" has a page", page.Scheme+" "+page.Host, "https "+page.Hostname())
		check.Equal(t, p.Name+" has a host", page.Host != "", true)
	}
	check.Equal(t, "names in order, each once", slices.Compact(slices.Sorted(slices.Values(names))), names)
}
