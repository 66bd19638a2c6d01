package keys

import (
	"bytes"
	"fmt"
)

// leastEnvelope is the size of an encrypted key without the key itself: header, nonce and tag.
const leastEnvelope = len(envelopeV1) + secretIDLength + 12 + 16

// CheckRecord returns an error if a ring could not open with the stored key. It checks only the
// form of encrypted keys. The error quotes no part of the key.
func CheckRecord(r Record) error {
	if how := (Secrets{}).Of(r); how == Plain {
		_, err := parse(r)
		return err
	}
	if !bytes.HasPrefix(r.PrivateKey, []byte(envelopeV1)) || len(r.PrivateKey) <= leastEnvelope {
		return fmt.Errorf("keys: key %q: %w", r.ID, ErrDamaged)
	}
	return nil
}

// CheckMAC is like [CheckRecord], for the shared secret that [OpenMAC] reads.
func CheckMAC(stored []byte) error {
	if (Secrets{}).Of(macRecord(stored)) != Plain {
		return CheckRecord(macRecord(stored))
	}
	return checkMAC(stored)
}
