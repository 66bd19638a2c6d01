package tokenclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"oauth-server/internal/cli/tokenclient"
	"oauth-server/internal/clientcfg"
)

// A token is asked for once and reused until shortly before it expires.
func ExampleClient_Token() {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, server.URL, server.URL+"/token")
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"access_token":"opaque","token_type":"Bearer","expires_in":3600}`)
	})
	dir, err := os.MkdirTemp("", "tokens")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	client := &tokenclient.Client{HTTP: tokenclient.NewHTTPClient(), Now: time.Now}
	request := tokenclient.Request{
		Issuer:       server.URL,
		Grant:        clientcfg.ClientCredentials,
		ClientID:     "shop",
		ClientSecret: "the secret of the shop",
		CacheDir:     dir,
	}
	for range 2 {
		result, err := client.Token(context.Background(), request)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Origin, result.Token.TokenType)
	}
	// Output:
	// issued Bearer
	// reused Bearer
}
