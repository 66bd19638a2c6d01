package events

// Grants that this server does not support, by their names at other providers.
const (
	auth0MFA          = "http://auth0.com/oauth/grant-type/mfa"
	auth0Passwordless = "http://auth0.com/oauth/grant-type/passwordless/otp" //nolint:gosec // G101: a name
	auth0Passkey      = "urn:okta:params:oauth:grant-type:webauthn"          //nolint:gosec // G101: a name
	deviceCode        = "urn:ietf:params:oauth:grant-type:device_code"
	tokenExchange     = "urn:ietf:params:oauth:grant-type:token-exchange" //nolint:gosec // G101: a name
	ciba              = "urn:openid:params:grant-type:ciba"
)
