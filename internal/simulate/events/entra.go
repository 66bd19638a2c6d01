package events

import (
	"strings"

	"oauth-server/internal/simulate/traffic"
)

// entra reads sign-in logs of Microsoft Entra: as returned by Microsoft Graph; as written by
// diagnostic settings, wrapped in properties; as exported from tables of Log Analytics; and as
// PowerShell writes the data of Microsoft Graph.
type entra struct {
	*fields
	at, received, category, client, user, remote, caller int
	code, result, principal, protocol, interactive, sent int
}

// Problems of sign-ins.
var (
	errEntraTime     = &problem{"createdDateTime", "is missing"}
	errEntraTimeForm = &problem{"createdDateTime", "is not a time"}
	errEntraClient   = &problem{"appId", "is missing"}
	errEntraNoSignIn = &problem{wholeLine, "is no sign-in: it has neither appId nor category"}
)

func newEntra(c *shared) *entra {
	l := newLayout()
	wrapped := func(name string) int {
		return l.field("."+name, ".properties."+name, "."+strings.ToUpper(name[:1])+name[1:])
	}
	e := &entra{
		at: wrapped("createdDateTime"), received: l.field(".time", ".TimeGenerated"), category: l.field(".category", ".Category"),
		client: wrapped("appId"), user: wrapped("userId"), remote: l.field(".ipAddress", ".properties.ipAddress", ".IPAddress", ".IpAddress"),
		caller: l.field(".callerIpAddress"), code: l.field(".status.errorCode", ".properties.status.errorCode", ".Status.errorCode", ".Status.ErrorCode"),
		result: l.field(".resultType", ".ResultType"), principal: wrapped("servicePrincipalId"),
		protocol: wrapped("authenticationProtocol"), interactive: wrapped("isInteractive"), sent: wrapped("incomingTokenType"),
	}
	e.fields = newFields(l, c)
	return e
}

func (e *entra) parse(line []byte, r *traffic.Request) *problem {
	if bad := e.pick(line); bad != nil {
		return bad
	}
	category := strings.ToLower(string(e.text(e.category)))
	switch {
	case category != "" && !strings.HasSuffix(category, "signinlogs"):
		return skip
	case category == "" && !e.has(e.client):
		return errEntraNoSignIn
	}
	if bad := e.time(r, errEntraTime, errEntraTimeForm, e.at, e.received); bad != nil {
		return bad
	}
	r.Client = e.string(e.client)
	if r.Grant = e.grantOf(category); r.Grant != "client_credentials" {
		r.User = e.string(e.user)
	}
	r.Source = e.strings.addr([]byte(e.first(e.remote, e.caller)))
	code := e.first(e.code, e.result)
	n, isNumber := whole([]byte(code))
	r.Failed = code != "" && (n != 0 || !isNumber) && !strings.EqualFold(code, "success")
	return clientOr(r, errEntraClient)
}

// grantOf returns the grant of a sign-in, as far as the log shows it. A sign-in of a user without a
// page uses a refresh token.
func (e *entra) grantOf(category string) string {
	switch {
	case strings.Contains(category, "serviceprincipal") || strings.Contains(category, "managedidentity"):
		return "client_credentials"
	case e.has(e.principal) && !e.has(e.user):
		return "client_credentials"
	case e.is(e.protocol, "ropc"):
		return "password"
	case e.is(e.protocol, "deviceCode"):
		return deviceCode
	case e.is(e.sent, "refreshToken"), strings.HasPrefix(category, "noninteractive"), e.is(e.interactive, "false"):
		return "refresh_token"
	}
	return "authorization_code"
}

// isEntra reports whether a line comes from a sign-in log.
func isEntra(line []byte) bool {
	return hasMembers(line, "appId", "createdDateTime") || hasMembers(line, "AppId", "ResultType") || hasMembers(line, "AppId", "CreatedDateTime") ||
		hasMembers(line, "category", "properties") || hasMembers(line, "category", "resultType")
}
