package decision

import "unsafe"

// clients is how many clients the users of the keys belong to.
const clients = 1000

// A key is client-NNN:user-NNNNNNN.
const (
	clientSize = len("client-000")
	keySize    = len("client-000:user-0000000")
)

// benchKey is a key with bytes that are rewritten for each decision. In a server, too, the bytes of a key
// were just read from a request and are in the cache.
type benchKey struct{ text [keySize]byte }

// newKey returns the key of number 0.
func newKey() *benchKey {
	k := new(benchKey)
	copy(k.text[:], "client-000:user-0000000")
	return k
}

// Number makes k the key of number n, which is valid until the next call.
func (k *benchKey) Number(n int) string {
	digits(k.text[clientSize-3:clientSize], n%clients)
	digits(k.text[keySize-7:], n)
	return unsafe.String(&k.text[0], keySize) // valid until the next call
}

// keyOf returns the key of number n as a string of its own.
func keyOf(n int) string { return string([]byte(newKey().Number(n))) }

func digits(to []byte, n int) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = '0' + byte(n%10)
		n /= 10
	}
}
