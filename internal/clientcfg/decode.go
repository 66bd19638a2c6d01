package clientcfg

import (
	"fmt"

	"oauth-server/internal/strict"
)

// DecodePolicySet reads what a store keeps as JSON. It refuses what it does not
// know, with [ErrUnreadable]: a newer release may have written it.
func DecodePolicySet(stored []byte) (set PolicySet, err error) {
	v, err := strict.ParseJSON(stored)
	if err == nil {
		err = v.Decode(&set, nil).Err()
	}
	if err != nil {
		return PolicySet{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return set, nil
}
