package tokenrequest_test

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
)

func TestReadJSON(t *testing.T) {
	for body, want := range map[string]tokenrequest.Request{
		`{}`: {},
		`{"grant_type":"password","client_id":"a","username":"b","password":1,"resource":["x","y"]}`: {ClientID: "a", Grant: "password", Username: "b"},
		"{\r\n\t\"client_id\" : \"a\" ,\n \"x\" : { \"client_id\" : [ \"}\\\"\", {} ] } }":           {ClientID: "a"},
		`{"n":-1.5e3,"t":true,"f":false,"z":null,"client\u005fid":"\u0061\"\/\ud83d\ude00"}`:         {ClientID: "a\"/😀"},
		`{"grant_type":"refresh_token","refresh_token":"r%2B+","client_secret":"s"}`:                 {Grant: "refresh_token", RefreshToken: subject.DigestOf("r%2B+")},
		`{"client_id":""}`: {},
		`{"client_id":"a","redirect_uri":"https://app.example/?a&b=%zz&code=c","x":"a&b"}`: {ClientID: "a"},
		"\r\n" + `{"client_id":"a"}` + "\t\n":                                              {ClientID: "a"},
	} {
		t.Run(body, func(t *testing.T) {
			got, _, err := tokenrequest.Read(header("Content-Type", "application/json; charset=utf-8"), "", []byte(body))
			check.OK(t, err)
			check.Equal(t, "the request", got, want)
		})
	}
}

func TestRefusesJSON(t *testing.T) {
	long := strings.Repeat("x", 256)
	for body, why := range map[string]string{
		``:                                       "not a valid JSON object",
		`{"client_id":"a"`:                       "not a valid JSON object",
		`{"client_id":"a"} {}`:                   "not a valid JSON object",
		"\ufeff{}":                               "not a valid JSON object",
		"{\"client_id\":\"\xff\"}":               "not a valid JSON object",
		"{\"client_id\":\"a\nb\"}":               "not a valid JSON object",
		`[{"client_id":"a"}]`:                    "not a valid JSON object",
		`"client_id"`:                            "not a valid JSON object",
		`1`:                                      "not a valid JSON object",
		`{"a":"&client_id=shop&grant_type=x&"}`:  "contains a form",
		`{"a":"&client%5fid=shop&"}`:             "contains a form",
		`{"a":"&client_assertion=x"}`:            "contains a form",
		`{"a":"&Client_ID=x"}`:                   "contains a form",
		`{"client_id":"a","client_id":"a"}`:      "same name twice",
		`{"client_id":"a","client\u005fid":"a"}`: "same name twice",
		`{"x":1,"X":2}`:                          "same name twice",
		`{"Client_ID":"a"}`:                      "taken for client_id",
		`{"client_id":"a","uſername":"b"}`:       "taken for username",
		`{"client.id":"a"}`:                      "taken for client_id",
		`{"client_id":1}`:                        "client_id is not a JSON string",
		`{"client_id":null}`:                     "client_id is not a JSON string",
		`{"username":["a"]}`:                     "username is not a JSON string",
		`{"code":{}}`:                            "code is not a JSON string",
		`{"client_secret":1}`:                    "client_secret is not a JSON string",
		`{"client_id":"\ud800"}`:                 "client_id is not a JSON string",
		`{"client_id\ud800":"a"}`:                "a name that is not text",
		`{"` + long + `":"a"}`:                   "longer than 255",
		`{"client_id\u0000":"a"}`:                "name of a parameter is not valid UTF-8",
		`{"username":"a\u0000"}`:                 "username is not valid UTF-8",
		`{"username":"` + long + `"}`:            "longer than 255",
		strings.Repeat("[", 20_000):              "not a valid JSON object",
		`{` + manyNames(65) + `}`:                "more than 64 names",
		`{"client_assertion":"\ud8"}`:            "not a valid JSON object",
	} {
		t.Run(body[:min(len(body), 50)], func(t *testing.T) {
			wantRefused(t, header("Content-Type", "application/json"), "", body, why)
		})
	}
}

func manyNames(n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, `"x`+strings.Repeat("y", i)+`":1`)
	}
	return strings.Join(fields, ",")
}
