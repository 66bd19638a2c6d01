package keys

// Algorithm is a JWS signature algorithm (RFC 7518 3.1, RFC 8037).
type Algorithm string

// The supported algorithms for signing access tokens.
const (
	ES256 Algorithm = "ES256"
	EdDSA Algorithm = "EdDSA"
	RS256 Algorithm = "RS256"
)

// Algorithms returns all supported algorithms. The first is the default.
func Algorithms() []Algorithm { return []Algorithm{ES256, EdDSA, RS256} }
