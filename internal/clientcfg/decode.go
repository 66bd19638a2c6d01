package clientcfg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// DecodePolicySet reads what a store keeps as JSON. It refuses what it does not
// know, with [ErrUnreadable]: a newer release may have written it.
func DecodePolicySet(stored []byte) (set PolicySet, err error) {
	d := json.NewDecoder(bytes.NewReader(stored))
	d.DisallowUnknownFields()
	if err = d.Decode(&set); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows it")
		}
	}
	if err != nil {
		return PolicySet{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return set, nil
}
