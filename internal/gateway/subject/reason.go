package subject

// Reason says why the subject of an answer is unknown. There are only a few reasons and none
// contains a part of the answer, so a Reason can be a metric label.
type Reason uint8

// The reasons.
const (
	// Known means that the subject is known.
	Known Reason = iota
	// MalformedAnswer means that the answer is not a single JSON object, is larger than
	// [MaxAnswer], or is nested too deeply.
	MalformedAnswer
	// AmbiguousAnswer means that a relevant member occurs twice in the answer.
	AmbiguousAnswer
	// NoJWT means that there is no id_token, and no access token that is a JWT.
	NoJWT
	// BadIDToken means that the id_token is not a signed JWT. It may be encrypted (JWE).
	BadIDToken
	// NoClaim means that no JWT in the answer has the claim.
	NoClaim
	// AmbiguousClaim means that the claim occurs twice in one JWT.
	AmbiguousClaim
	// ClaimType means that the claim is neither a string nor a whole number.
	ClaimType
	// UnfitSubject means that the claim cannot be the name of a user, see [Reader.Read].
	UnfitSubject
	// IntrospectionFailed means that the introspection endpoint did not answer, or not as RFC 7662
	// requires.
	IntrospectionFailed
	// IntrospectionInactive means that the endpoint does not know the token, or that the token is
	// not active.
	IntrospectionInactive
	// IntrospectionBusy means that the endpoint was not asked because the queue was full.
	IntrospectionBusy

	reasons // the number of reasons
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

// Reasons returns all reasons for an unknown subject, for metrics that export every reason from the
// start.
func Reasons() []Reason {
	all := make([]Reason, 0, reasons-1)
	for r := Known + 1; r < reasons; r++ {
		all = append(all, r)
	}
	return all
}
