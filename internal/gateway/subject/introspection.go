package subject

// MaxToken is the length in bytes of the longest access token that [AccessToken] returns.
const MaxToken = 16 << 10

// AccessToken returns the access token of a successful answer, for the introspection endpoint. It is empty
// if there is none, or one with other characters than RFC 6749 appendix A.12 allows, or longer than
// [MaxToken], or if [Reader.Read] cannot read the answer.
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

// ReadIntrospection returns the user whom the answer of an introspection endpoint (RFC 7662 section 2.2)
// names in the claim, or why it names none: IntrospectionFailed if it is no such answer,
// IntrospectionInactive if the token is not active, otherwise a reason of the claim. Of the answer nothing
// else is looked at.
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
