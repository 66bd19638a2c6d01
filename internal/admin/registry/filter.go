package registry

import (
	"strings"

	"oauth-server/internal/clientcfg"
)

// Filter selects clients. The zero value selects all.
type Filter struct {
	Prefix string          // of the ID
	Grant  clientcfg.Grant // that the client may use; empty for any
	// Labels are name=value, or a name for any value. A client must have all of them.
	Labels []string
}

// Matches reports whether the filter selects the client.
func (f *Filter) Matches(c *clientcfg.Client) bool {
	for _, label := range f.Labels {
		if !c.Labels.Has(label) {
			return false
		}
	}
	return strings.HasPrefix(c.ID, f.Prefix) && (f.Grant == "" || c.May(f.Grant))
}
