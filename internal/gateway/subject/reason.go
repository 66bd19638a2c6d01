package subject

// Reason is why the subject of an answer is not known. There are few, so it can be the label of a
// metric, and none has anything of the answer in it.
type Reason uint8

// The reasons.
const (
	// Known means that there is a subject.
	Known Reason = iota
	// MalformedAnswer means that the answer is not one JSON object, is larger than [MaxAnswer], or is
	// nested too deeply.
	MalformedAnswer
	// AmbiguousAnswer means that a name that matters occurs twice in the answer.
	AmbiguousAnswer
	// NoJWT means that there is no id_token and no access token that is a JWT.
	NoJWT
	// BadIDToken means that the id_token is not a signed JWT. It may be encrypted (JWE).
	BadIDToken
	// NoClaim means that no JWT of the answer has the claim.
	NoClaim
	// AmbiguousClaim means that the claim occurs twice in one JWT.
	AmbiguousClaim
	// ClaimType means that the claim is neither a string nor a whole number.
	ClaimType
	// UnfitSubject means that the claim cannot be the name of a user, see [Reader.Read].
	UnfitSubject
	// IntrospectionFailed means that the introspection endpoint did not answer, or not as RFC 7662 says.
	IntrospectionFailed
	// IntrospectionInactive means that it knows no such token.
	IntrospectionInactive
	// IntrospectionBusy means that it was not asked, because too many questions wait.
	IntrospectionBusy

	reasons // how many there are
)

var reasonNames = [reasons]string{
	"known", "malformed_answer", "ambiguous_answer", "no_jwt", "bad_id_token", "no_claim", "ambiguous_claim", "claim_type",
	"unfit_subject", "introspection_failed", "introspection_inactive", "introspection_busy",
}

// String returns the reason as a label: lower case, with underscores.
func (r Reason) String() string {
	if r >= reasons {
		return "unknown"
	}
	return reasonNames[r]
}

// Reasons returns every reason why a subject is not known, for metrics that have each from the start.
func Reasons() []Reason {
	all := make([]Reason, 0, reasons-1)
	for r := Known + 1; r < reasons; r++ {
		all = append(all, r)
	}
	return all
}
