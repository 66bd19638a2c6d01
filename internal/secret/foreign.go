package secret

// Foreign names the kind of a password hash that this program has not made, such as bcrypt; empty for
// its own.
func Foreign(string) string { return "" }

// CheckForeign returns why a password hash cannot be imported.
func CheckForeign(hash string) error {
	_, err := parseHash(hash)
	return err
}

// ParseDigest reads the SHA-256 of a generated secret as other programs write it: hexadecimal or base64,
// after {SHA256} or by itself.
func ParseDigest(text string) (d Digest, err error) {
	return d, d.UnmarshalText([]byte(text))
}
