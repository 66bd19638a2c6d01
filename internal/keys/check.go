package keys

import (
	"bytes"
	"fmt"
)

// leastEnvelope is what an encrypted key has beside the key: header, nonce and tag.
const leastEnvelope = len(envelopeV1) + secretIDLength + 12 + 16

// CheckRecord returns an error unless a ring can open on the stored key. What is encrypted is checked by its
// form only. The error quotes nothing of the key.
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

// CheckMAC is [CheckRecord] for the shared secret from which [OpenMAC] makes a MAC.
func CheckMAC(stored []byte) error {
	if (Secrets{}).Of(macRecord(stored)) != Plain {
		return CheckRecord(macRecord(stored))
	}
	return checkMAC(stored)
}
