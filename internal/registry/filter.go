package registry

import (
	"strings"

	"oauth-server/internal/clientcfg"
)

// Filter chooses clients. The zero value chooses all.
type Filter struct {
	Prefix string          // of the ID
	Grant  clientcfg.Grant // that the client may use; empty: any
	// Labels are name=value, or a name for any value. A client needs all of them.
	Labels []string
}

// Matches reports whether the filter chooses the client.
func (f *Filter) Matches(c *clientcfg.Client) bool {
	for _, label := range f.Labels {
		if !c.Labels.Has(label) {
			return false
		}
	}
	return strings.HasPrefix(c.ID, f.Prefix) && (f.Grant == "" || c.May(f.Grant))
}
