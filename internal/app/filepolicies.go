package app

import (
	"context"
	"errors"

	"oauth-server/internal/clientcfg"
)

// policiesOf returns where operators' changes of the limits are kept. A store
// that keeps none leaves the limits to the configuration file.
func policiesOf(s Store) clientcfg.PolicyStore {
	if p, ok := s.(clientcfg.PolicyStore); ok {
		return p
	}
	return filePolicies{}
}

// filePolicies is a [clientcfg.PolicyStore] in which nothing was ever changed.
type filePolicies struct{}

var errFilePolicies = errors.New("this store keeps no limits: change them in the configuration file")

// Policies implements [clientcfg.PolicyStore].
func (filePolicies) Policies(context.Context) (clientcfg.PolicySet, error) {
	return clientcfg.PolicySet{}, nil
}

// PolicyVersion implements [clientcfg.PolicyStore].
func (filePolicies) PolicyVersion(context.Context) (int64, error) { return 0, nil }

// ReplacePolicies implements [clientcfg.PolicyStore].
func (filePolicies) ReplacePolicies(context.Context, clientcfg.PolicySet, clientcfg.AuditEntry) error {
	return errFilePolicies
}
