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

// HasToken reports whether an answer has an access token, or else says that there is an error (RFC 6749 section 5.2): some
// servers have the status 200 for both. Both are false of what is no JSON object.
func HasToken(body []byte) (has, failed bool) {
	names, values := [...]string{"access_token", "error"}, [2]span{}
	if len(body) > MaxAnswer {
		return false, false
	}
	_, ok := find(body, names[:], values[:])
	has = ok && !absent(values[0].in(body))
	return has, ok && !has && !absent(values[1].in(body))
}

// Refusal returns the error of an answer without a token, and its description (RFC 6749 section 5.2); empty if it has none.
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
