package tokenrequest

import (
	"net/http"
	"strings"
)

// umaGrant requests permissions (UMA 2.0). With a bearer token, Keycloak uses the client of that
// token and ignores the client_id in the body.
const umaGrant = "urn:ietf:params:oauth:grant-type:uma-ticket"

// bearerClientID returns the client of the access token that authenticates a request for
// permissions, from its claim azp. It returns an empty ID for other requests, or if the token is
// not a JWT. The server behind the gateway verifies the token.
func bearerClientID(header http.Header, p *params) ([]byte, error) {
	fields := header["Authorization"] // basicClientID refuses several fields
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
