package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"oauth-server/internal/httpapi"
)

// A server is an http.Handler for the domain. The example uses a fake domain. The real server uses
// grants.Service and keys.Ring.
func ExampleNew() {
	domain := newFake()
	server, err := httpapi.New(httpapi.Options{
		Issuer: "https://id.example.com", Service: domain, Keys: domain,
	})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader("grant_type=client_credentials&scope=read&scope=write"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("shop", "s3cret")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Content-Type"), w.Header().Get("Cache-Control"))
	fmt.Println(w.Body)
	// Output:
	// 400 application/json no-store
	// {"error":"invalid_request","error_description":"The parameter scope is repeated."}
}
