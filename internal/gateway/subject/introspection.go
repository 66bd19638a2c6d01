package subject

// MaxToken is the maximum length in bytes of an access token from [AccessToken].
const MaxToken = 16 << 10

// AccessToken returns the access token of a successful answer, for the introspection endpoint. It
// returns an empty string if there is no token, if it contains characters that RFC 6749 appendix
// A.12 does not allow, if it is longer than [MaxToken], or if [Reader.Read] cannot read the answer.
func AccessToken(body []byte) string {
	var values [members]span
	if len(body) > MaxAnswer {
		return ""
	}
	twice, ok := find(body, memberNames[:], values[:])
	token, isText := text(values[accessToken].in(body))
	if !ok || twice || !isText || !visible(token) || len(token) > MaxToken {
		return ""
	}
	return string(token)
}

// HasToken reports whether an answer has an access token, and, if not, whether it has an error (RFC
// 6749 section 5.2). Some servers use the status 200 for both. Both results are false if the body
// is not a JSON object.
func HasToken(body []byte) (has, failed bool) {
	names, values := [...]string{"access_token", "error"}, [2]span{}
	if len(body) > MaxAnswer {
		return false, false
	}
	_, ok := find(body, names[:], values[:])
	has = ok && !absent(values[0].in(body))
	return has, ok && !has && !absent(values[1].in(body))
}

// Refusal returns the error and the error_description of an answer without a token (RFC 6749
// section 5.2), or empty strings if they are missing.
func Refusal(body []byte) (code, description string) {
	names, values := [...]string{"error", "error_description"}, [2]span{}
	if len(body) > MaxAnswer {
		return "", ""
	}
	if _, ok := find(body, names[:], values[:]); !ok {
		return "", ""
	}
	first, _ := text(values[0].in(body))
	second, _ := text(values[1].in(body))
	return string(first), string(second)
}

// ReadIntrospection returns the user in the claim of an introspection answer (RFC 7662 section
// 2.2), or the reason why the user is unknown: IntrospectionFailed if the body is not an
// introspection answer, IntrospectionInactive if the token is not active, otherwise a reason about
// the claim. It reads no other member of the answer.
func (r *Reader) ReadIntrospection(body []byte) (user string, reason Reason) {
	const active, claim = 0, 1
	names, values := [...]string{active: "active", claim: r.claim[0]}, [2]span{}
	twice, ok := find(body, names[:], values[:])
	switch state := string(values[active].in(body)); {
	case !ok || state != "true" && state != "false":
		return "", IntrospectionFailed
	case twice:
		return "", AmbiguousClaim
	case state == "false":
		return "", IntrospectionInactive
	}
	return userOf(values[claim].in(body))
}
