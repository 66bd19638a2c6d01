package clientcfg

import (
	"fmt"

	"oauth-server/internal/strict"
)

// DecodePolicySet reads the JSON that a store keeps. An unknown field is an error that
// wraps [ErrUnreadable]: a newer release may have written it.
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
