package clientcfg

import (
	"fmt"

	"oauth-server/internal/strict"
)

// DecodePolicySet reads the JSON that a store keeps, as strictly as any other document: an
// unknown field, which a newer release may have written, a name given twice, null in a list
// or text that is not Unicode is an error that wraps [ErrUnreadable].
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
