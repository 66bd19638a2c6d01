package events

import (
	"maps"
	"slices"
	"strings"
)

// preset describes the log of a provider: where its fields are, and what its entries stand for.
type preset struct {
	// A line is of the format if it has all texts of one of these, or is an object with all paths
	// of one of these, separated by spaces.
	texts   [][]string
	objects []string
	// fields are the paths of the fields by name, separated by spaces. The last one that is present
	// counts. Names that are not in keyNames are for rules only.
	fields map[string]string
	// within are the paths of members that can be around an entry, after "".
	within []string
	// entries are a grant each, and the kinds of entries about it. A ! marks those of failed
	// requests. Entries of other kinds are skipped. Nil: all entries are read.
	entries []string
	rules   []rule
	decode  func(*parser, []byte) *problem // nil: lines are objects
	foreign *problem
	noUser  *problem
}

// rule is an effect on entries that meet all conditions: NAME==TEXT or NAME!=TEXT, separated by
// spaces. Without a TEXT the field has to be absent.
type rule struct {
	when string
	effect
}

// Grants that this server does not support, by their names at other providers.
const (
	auth0MFA          = "http://auth0.com/oauth/grant-type/mfa"
	auth0Passwordless = "http://auth0.com/oauth/grant-type/passwordless/otp" //nolint:gosec // G101: a name
	auth0Passkey      = "urn:okta:params:oauth:grant-type:webauthn"          //nolint:gosec // G101: a name
	deviceCode        = "urn:ietf:params:oauth:grant-type:device_code"
	tokenExchange     = "urn:ietf:params:oauth:grant-type:token-exchange" //nolint:gosec // G101: a name
	ciba              = "urn:openid:params:grant-type:ciba"
)

// Problems of lines that are not of a format.
var (
	notOurs     = &problem{wholeLine, "is not a line of this server's log"}
	notKeycloak = &problem{wholeLine, "is neither an event nor a line of Keycloak's log"}
	notAuth0    = &problem{wholeLine, "is not an entry of a tenant log: it has no type or no date"}
	notOkta     = &problem{wholeLine, "is not an event of the System Log: it has no eventType"}
	notEntra    = &problem{wholeLine, "is not a sign-in: it has neither appId nor category"}
)

// presets are the formats with fields in known places.
var presets = map[Format]*preset{
	// The access log of this server, as text or JSON. Its other lines, and entries of the audit
	// trail, are not token requests.
	OAuthServer: {
		texts:   [][]string{{"level=", " msg=", "time="}},
		objects: []string{".time .level .msg", ".level .msg .duration_ms"}, // a wrapper can have the time
		fields: map[string]string{
			"time": `."@timestamp" .time`, "took": ".duration_ms", "kind": ".msg", "status": ".status", "source": ".remote",
			"client": ".client_id", "grant": ".grant_type", "user": ".user_hash .username", "unknown": ".user",
			"method": ".method", "path": ".path", "limit": ".limit", "outcome": ".outcome", "action": ".action",
		},
		entries: []string{" request"},
		rules: []rule{
			{"kind== action!=", effect{problem: skip}},
			{"kind==", effect{problem: notOurs}},
			// Token endpoints behind a gateway have any path, and the gateway's judge does not always get the
			// grant. But only token requests have a grant, or an unknown user.
			{"grant== unknown== method!=POST", effect{problem: skip}},
			{"grant== unknown== path!=*/token", effect{problem: skip}},
			{"kind==request status!=2* status!=4* status!=5* status!=3* status!=1*", effect{problem: &problem{"status", "is not a number"}}},
			// Denied before the policies were checked.
			{"status==429 outcome==", effect{failed: true}},
			{"status==429 limit==failed_attempts*", effect{failed: true}},
			{"status==429 limit==passwords.*", effect{failed: true}},
			{"unknown==unknown", effect{unknown: true}},
			// Denied before the password was checked: the name may be a mistyped password.
			{"status==429 grant==password user== limit!=failed_attempts* limit!=passwords.*", effect{unknown: true}},
		},
		decode:  (*parser).decodeOurs,
		foreign: notOurs,
		noUser:  &problem{"user_hash", "is missing: log_users was not all"},
	},
	// Events of Keycloak: as returned by the admin API, as written by exporters, and as lines of its
	// log that the jboss-logging listener writes, as text or JSON.
	Keycloak: {
		texts:   [][]string{{"[org.keycloak."}, {"[io.quarkus"}},
		objects: []string{".type .realmId", ".loggerName .message", `."log.logger" .message`},
		fields: map[string]string{
			"time": ".time", "logged": `."@timestamp" .timestamp`, "kind": ".type", "client": ".clientId", "user": ".userId",
			"source": ".ipAddress", "status": ".error", "grant": ".grant_type .details.grant_type", "scope": ".scope .details.scope",
			"lifetime": ".access_token_expiration_time .details.access_token_expiration_time",
			"method":   ".auth_method .details.auth_method", "logger": `.loggerName ."log.logger" .log.logger`,
			"message": ".message", "operation": ".operationType",
		},
		entries: []string{
			"client_credentials CLIENT_LOGIN !CLIENT_LOGIN_ERROR",
			"authorization_code CODE_TO_TOKEN !CODE_TO_TOKEN_ERROR",
			"refresh_token REFRESH_TOKEN !REFRESH_TOKEN_ERROR",
			"password LOGIN !LOGIN_ERROR",
			tokenExchange + " TOKEN_EXCHANGE !TOKEN_EXCHANGE_ERROR",
			deviceCode + " OAUTH2_DEVICE_CODE_TO_TOKEN !OAUTH2_DEVICE_CODE_TO_TOKEN_ERROR",
			ciba + " AUTHREQID_TO_TOKEN !AUTHREQID_TO_TOKEN_ERROR",
			"urn:ietf:params:oauth:grant-type:uma-ticket PERMISSION_TOKEN !PERMISSION_TOKEN_ERROR",
			"urn:ietf:params:oauth:grant-type:jwt-bearer JWT_BEARER !JWT_BEARER_ERROR",
			"extension OAUTH2_EXTENSION_GRANT !OAUTH2_EXTENSION_GRANT_ERROR",
		},
		rules: []rule{
			// Other logins are of people in a browser, and no token requests.
			{"kind==LOGIN* grant!=password method!=oauth_credentials", effect{problem: skip}},
		},
		decode:  (*parser).decodeKeycloak,
		foreign: notKeycloak,
	},
	// Tenant logs of Auth0: as returned by its management API, and as sent by log streams, including
	// those of Amazon EventBridge, Azure Event Grid and Splunk.
	Auth0: {
		objects: []string{
			".type .date .log_id", ".type .date .client_id", ".data.type .data.date", ".detail.data.type .detail.data.date",
			".data.data.type .data.data.date", ".event.data.type .event.data.date",
		},
		within: []string{".data", ".detail.data", ".data.data", ".event.data"},
		fields: map[string]string{
			"time": ".date", "kind": ".type", "client": ".client_id", "user": ".user_id", "source": ".ip", "scope": ".scope",
		},
		entries: []string{
			"client_credentials seccft !feccft",
			"authorization_code seacft !feacft",
			"refresh_token sertft !fertft !ferrt",
			"password sepft !fepft",
			deviceCode + " sede !fede",
			tokenExchange + " sens !fens secte !fecte",
			auth0MFA + " seoobft !feoobft seotpft !feotpft sercft !fercft",
			auth0MFA + " sepkoobft !fepkoobft sepkotpft !fepkotpft sepkrcft !fepkrcft",
			auth0Passwordless + " sepotpft !fepotpft",
			auth0Passkey + " sepkft !fepkft",
			ciba + " ciba_exchange_succeeded !ciba_exchange_failed",
		},
		rules: []rule{ // other logs have types, too
			{"kind==", effect{problem: notAuth0}},
			{"time==", effect{problem: notAuth0}},
		},
		foreign: notAuth0,
	},
	// The System Log of Okta: as returned by its API, and as sent by log streams. A successful request
	// has one event for each of its tokens, and exactly one is for an access token. A failed request
	// has one event.
	Okta: {
		objects: []string{".eventType .published", ".detail.eventType .detail.published", ".event.eventType .event.published"},
		within:  []string{".detail", ".event"},
		fields: map[string]string{
			"time": ".published", "kind": ".eventType", "status": ".outcome.result", "source": ".client.ipAddress",
			"client": ".actor[type!=User].id .client.id", "user": ".actor[type=User].id .target[type=User].id",
			"grant": ".debugContext.debugData.grantType", "scope": ".debugContext.debugData.grantedScopes",
			"lifetime": ".target[type=access_token].detailEntry.expires",
		},
		entries: []string{
			" app.oauth2.token.grant.access_token app.oauth2.as.token.grant.access_token app.oauth2.token.grant app.oauth2.as.token.grant",
		},
		rules: []rule{
			{"kind==", effect{problem: notOkta}},
			{"kind==*.token.grant status==SUCCESS", effect{problem: skip}},
			{"status==", effect{failed: true}},
		},
		foreign: notOkta,
	},
	// Sign-in logs of Microsoft Entra: as returned by Microsoft Graph; as written by diagnostic
	// settings; as exported from tables of Log Analytics; and as PowerShell writes the data of
	// Microsoft Graph. The grants are what the log shows of them.
	Entra: {
		objects: []string{".appId .createdDateTime", ".AppId .ResultType", ".AppId .CreatedDateTime", ".category .properties", ".category .resultType"},
		within:  []string{".properties"},
		fields: map[string]string{
			"time": ".time .TimeGenerated .CreatedDateTime .createdDateTime", "category": ".category .Category",
			"client": ".AppId .appId", "user": ".UserId .userId", "source": ".callerIpAddress .IPAddress .IpAddress .ipAddress",
			"status":    ".resultType .ResultType .Status.errorCode .Status.ErrorCode .status.errorCode",
			"principal": ".ServicePrincipalId .servicePrincipalId", "protocol": ".AuthenticationProtocol .authenticationProtocol",
			"interactive": ".IsInteractive .isInteractive", "sent": ".IncomingTokenType .incomingTokenType",
		},
		rules: []rule{
			{"category!= category!=*SignInLogs", effect{problem: skip}},
			{"category== client==", effect{problem: notEntra}},
			{"category==*ServicePrincipalSignInLogs", effect{grant: clientCredentials}},
			{"category==*ManagedIdentitySignInLogs", effect{grant: clientCredentials}},
			{"principal!= user==", effect{grant: clientCredentials}},
			{"protocol==ropc", effect{grant: "password"}},
			{"protocol==deviceCode", effect{grant: deviceCode}},
			// A sign-in of a user without a page uses a refresh token.
			{"sent==refreshToken", effect{grant: "refresh_token"}},
			{"category==NonInteractive*", effect{grant: "refresh_token"}},
			{"interactive==false", effect{grant: "refresh_token"}},
			{"", effect{grant: "authorization_code"}},
		},
		foreign: notEntra,
	},
	// Lines with the default fields of a [Mapping]. They are not read by this preset.
	JSON: {objects: []string{".client .time"}},
}

// use compiles a preset. Its paths are constants, so it panics on a wrong one.
func (p *parser) use(s *preset) {
	p.root, p.foreign, p.noUser = &node{}, s.foreign, s.noUser
	slots := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		slots[name] = len(slots) + 1
		rank, paths := 0, s.fields[name]
		for _, around := range append([]string{""}, s.within...) {
			for path := range strings.FieldsSeq(paths) {
				if err := p.root.add(around+path, slots[name], rank); err != nil {
					panic(err)
				}
				rank++
			}
		}
	}
	p.scanner = newScanner(len(slots) + 1)
	for key, name := range keyNames {
		p.slot[key] = slots[name]
	}
	for _, r := range s.rules {
		compiled := compiledRule{effect: r.effect}
		for text := range strings.FieldsSeq(r.when) {
			c := conditionOf(text)
			compiled.when = append(compiled.when, wanted{slots[c.field], c})
		}
		p.rules = append(p.rules, compiled)
	}
	if s.entries != nil {
		p.entries = map[string]entry{}
	}
	for _, e := range s.entries {
		grant, kinds, _ := strings.Cut(e, " ")
		for kind := range strings.FieldsSeq(kinds) {
			name, failed := strings.CutPrefix(kind, "!")
			p.entries[name] = entry{grant, failed}
		}
	}
	p.missing = &problem{lastOf(s.fields["client"]), "is missing"}
	p.noTime, p.badTime = timeProblems(lastOf(s.fields["time"]))
	p.decode = p.decodeJSON
	if s.decode != nil {
		p.decode = func(line []byte) *problem { return s.decode(p, line) }
	}
}

// lastOf returns the last of some paths, for people.
func lastOf(paths string) string { return paths[strings.LastIndexByte(paths, ' ')+2:] }
