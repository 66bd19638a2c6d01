package tokenrequest_test

import (
	"errors"
	"fmt"
	"net/http"

	"oauth-server/internal/gateway/tokenrequest"
)

func ExampleRead() {
	header := http.Header{
		"Authorization": {"Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW"},
		"Content-Type":  {"application/x-www-form-urlencoded"},
	}
	r, _, err := tokenrequest.Read(header, "", []byte("grant_type=password&username=johndoe&password=A3ddj3w"))
	fmt.Println(r.ClientID, r.Grant, r.Username, err)

	_, _, err = tokenrequest.Read(header, "", []byte("grant_type=password&username=johndoe&Username=admin"))
	var refused *tokenrequest.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Description)
	}
	// Output:
	// s6BhdRkqt3 password johndoe <nil>
	// The name of a parameter could be taken for username.
}
