package tokenrequest

import (
	"net/http"
	"strings"
)

// umaGrant asks for permissions (UMA 2.0). With a bearer token Keycloak takes it from that token's client, whatever
// client_id the body has.
const umaGrant = "urn:ietf:params:oauth:grant-type:uma-ticket"

// bearerClientID returns the client whose access token authenticates a request for permissions, its claim azp; empty if
// the request is another one, or the token is no JWT. The server behind the gateway verifies the token.
func bearerClientID(header http.Header, p *params) ([]byte, error) {
	fields := header["Authorization"] // basicClientID refuses several
	if string(p.values[grantType]) != umaGrant || len(fields) == 0 {
		return nil, nil
	}
	words := strings.Fields(fields[0])
	if len(words) != 2 || !strings.EqualFold(words[0], "Bearer") && !strings.EqualFold(words[0], "DPoP") {
		return nil, nil
	}
	payload, ok := jwtPayload([]byte(words[1]))
	if !ok {
		return nil, nil
	}
	var id []byte
	err := eachField("The bearer token", payload, func(claim string, value []byte) error {
		if claim != "azp" {
			return nil
		}
		if id, ok = jsonText(value); !ok {
			return refuse("The claim azp of the bearer token is not a string.")
		}
		return nil
	})
	if err != nil || len(id) == 0 {
		return nil, err
	}
	return id, checkValue(client, id)
}
