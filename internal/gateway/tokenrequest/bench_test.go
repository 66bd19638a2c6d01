package tokenrequest_test

import (
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/gateway/tokenrequest"
)

func BenchmarkRead(b *testing.B) {
	const claims = `{"iss":"s6BhdRkqt3","sub":"s6BhdRkqt3","aud":"https://idp.example/token","jti":"6b1c","iat":1700000000,"exp":1700000060}`
	for name, c := range map[string]struct {
		header http.Header
		body   string
	}{
		"client_credentials with Basic": {form("Authorization", exampleBasic), "grant_type=client_credentials&scope=orders.read+orders.write"},
		"password":                      {form(), "grant_type=password&client_id=s6BhdRkqt3&client_secret=7Fjfp0ZBr1KtDRbnfVdmIw&username=john%40example.com&password=A3ddj3w&scope=openid"},
		"refresh_token":                 {form("Authorization", exampleBasic), "grant_type=refresh_token&refresh_token=" + strings.Repeat("eyJhbGciOiJIUzUxMiJ9", 40)},
		"client_assertion":              {form(), "grant_type=client_credentials&" + jwtBearer + "&" + jwt(claims)},
		"JSON":                          {header("Content-Type", "application/json"), `{"grant_type":"password","client_id":"s6BhdRkqt3","username":"johndoe","password":"A3ddj3w"}`},
		"64 KiB of parameters":          {form(), strings.Repeat("a=%20&", 999) + "x=" + strings.Repeat("%20", 19_000)},
		"64 KiB of JSON":                {header("Content-Type", "application/json"), `{"x":[` + strings.Repeat("1,", 32_000) + `1]}`},
		"refused":                       {form(), "grant_type=client_credentials&client_id=a&client_id=b"},
	} {
		b.Run(name, func(b *testing.B) {
			body := []byte(c.body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = tokenrequest.Read(c.header, "", body)
			}
		})
	}
}
