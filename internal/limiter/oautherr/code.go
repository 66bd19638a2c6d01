package oautherr

// Code is an OAuth error code, the value of the "error" parameter.
type Code string

// The error codes of RFC 6749 sections 4.1.2.1 and 5.2.
const (
	InvalidRequest          Code = "invalid_request"
	InvalidClient           Code = "invalid_client"
	InvalidGrant            Code = "invalid_grant"
	UnauthorizedClient      Code = "unauthorized_client"
	UnsupportedGrantType    Code = "unsupported_grant_type"
	UnsupportedResponseType Code = "unsupported_response_type"
	InvalidScope            Code = "invalid_scope"
	AccessDenied            Code = "access_denied"
	ServerError             Code = "server_error"
	TemporarilyUnavailable  Code = "temporarily_unavailable"
)

// Error codes of OpenID Connect Core 1.0 section 3.1.2.6 that this server uses. Each means that a
// page is needed but the request forbids pages.
const (
	LoginRequired       Code = "login_required"
	ConsentRequired     Code = "consent_required"
	InteractionRequired Code = "interaction_required"
)
