package keys

// Algorithm is a JWS signature algorithm (RFC 7518 3.1, RFC 8037).
type Algorithm string

// The algorithms that access tokens can be signed with.
const (
	ES256 Algorithm = "ES256"
	EdDSA Algorithm = "EdDSA"
	RS256 Algorithm = "RS256"
)

// Algorithms lists them, the default first.
func Algorithms() []Algorithm { return []Algorithm{ES256, EdDSA, RS256} }
