package tokenrequest_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestRefusesForm(t *testing.T) {
	long := strings.Repeat("x", 256)
	for name, c := range map[string]struct{ body, why string }{
		"client_id twice":                 {"client_id=a&client_id=a", "client_id is repeated"},
		"client_id twice, once empty":     {"client_id&x=y&client_id=a", "client_id is repeated"},
		"client_id twice, once encoded":   {"client_id=a&client%5fid=a", "client_id is repeated"},
		"client_secret twice":             {"client_secret=a&client_secret=", "client_secret is repeated"},
		"grant_type twice":                {"grant_type=password&grant_type=x", "grant_type is repeated"},
		"username twice":                  {"username=a&username=b", "username is repeated"},
		"refresh_token twice":             {"refresh_token=a&refresh_token=b", "refresh_token is repeated"},
		"code twice":                      {"code=a&code=b", "code is repeated"},
		"client_assertion twice":          {"client_assertion=a&client_assertion=b", "client_assertion is repeated"},
		"client_assertion_type twice":     {"client_assertion_type=a&client_assertion_type=b", "client_assertion_type is repeated"},
		"PHP: dot":                        {"client.id=a", "taken for client_id"},
		"PHP: plus":                       {"client+id=a", "taken for client_id"},
		"PHP: space in front":             {"+client_id=a", "taken for client_id"},
		"PHP: element":                    {"client_id[]=a", "taken for client_id"},
		"PHP: encoded element":            {"client_id%5B0%5D=a", "taken for client_id"},
		"PHP: open bracket":               {"grant[type=a", "taken for grant_type"},
		"PHP: NUL":                        {"code%00x=a", "name of a parameter is not valid UTF-8"},
		"qs, Rack: brackets":              {"[username]=a", "taken for username"},
		"Rack: bracket behind":            {"username]=a", "taken for username"},
		"ASP.NET: case":                   {"Client_ID=a", "taken for client_id"},
		"ASP.NET: case of the longest":    {"CLIENT_ASSERTION_TYPE=a", "taken for client_assertion_type"},
		"encoding/json: long s":           {"u%C5%BFername=a", "taken for username"},
		"encoding/json: Kelvin":           {"refresh_to%E2%84%AAen=a", "taken for refresh_token"},
		"space behind":                    {"username+=a", "taken for username"},
		"no-break space":                  {"%C2%A0username=a", "taken for username"},
		"name with a line break":          {"\nclient_id=a", "name of a parameter is not valid UTF-8"},
		"name of no text":                 {"client_id%ff=a", "name of a parameter is not valid UTF-8"},
		"JSON in a form's place":          {` {"client_id":"a","grant_type":"client_credentials"}`, "The body is JSON"},
		"byte order mark":                 {"\ufeffclient_id=a", "byte order mark"},
		"semicolon in a value":            {"client_id=a;b", "semicolon"},
		"semicolon before client_id":      {"scope=a;client_id=b", "semicolon"},
		"semicolon before Client.Id":      {"scope=a;Client.Id=b", "semicolon"},
		"semicolon in a name":             {"username;x=a", "semicolon"},
		"HTML entity":                     {"scope=a&amp;code=b", "semicolon"},
		"percent at the end":              {"client_id=a%", "percent sign"},
		"percent and one digit":           {"x=%4", "percent sign"},
		"percent and no digit":            {"x=%zz&client_id=a", "percent sign"},
		"percent in a name":               {"%u0063ode=a", "percent sign"},
		"NUL in client_id":                {"client_id=a%00", "client_id is not valid UTF-8"},
		"control character in username":   {"username=a%1f", "username is not valid UTF-8"},
		"C1 control in username":          {"username=a%c2%85", "username is not valid UTF-8"},
		"DEL in grant_type":               {"grant_type=a%7f", "grant_type is not valid UTF-8"},
		"NUL in refresh_token":            {"refresh_token=a%00", "refresh_token is not valid UTF-8"},
		"line break behind":               {"grant_type=password&client_id=a\r\n", "client_id is not valid UTF-8"},
		"invalid UTF-8":                   {"client_id=%ff", "client_id is not valid UTF-8"},
		"overlong UTF-8":                  {"username=%c1%a1", "username is not valid UTF-8"},
		"surrogate":                       {"username=%ed%a0%80", "username is not valid UTF-8"},
		"space before client_id":          {"client_id=+a", "client_id has a space"},
		"space behind refresh_token":      {"refresh_token=a+", "refresh_token has a space"},
		"fosite: list of grants":          {"grant_type=password+x", "grant_type has a space"},
		"long client_id":                  {"client_id=" + long, "client_id is longer than 255"},
		"long username":                   {"username=" + long, "username is longer than 255"},
		"long grant_type":                 {"grant_type=" + long, "grant_type is longer than 255"},
		"many parameters":                 {strings.Repeat("a=b&", 1000) + "client_id=a", "more than 1000"},
		"assertion without a type":        {jwt(`{"sub":"a"}`), "client_assertion_type is missing"},
		"assertion of one part":           {jwtBearer + "&client_assertion=abc", "not a signed JWT"},
		"encrypted assertion":             {jwtBearer + "&client_assertion=a.b.c.d.e", "not a signed JWT"},
		"assertion that is not base64":    {jwtBearer + "&client_assertion=a.b*.c", "not a signed JWT"},
		"assertion that is no JSON":       {jwtBearer + "&" + jwt("a"), "client_assertion is not a valid JSON object"},
		"assertion without sub":           {jwtBearer + "&" + jwt(`{"iss":"a"}`), "no claim sub"},
		"assertion with an empty sub":     {jwtBearer + "&" + jwt(`{"sub":""}`), "no claim sub"},
		"assertion whose sub is a list":   {jwtBearer + "&" + jwt(`{"sub":["a"]}`), "not a string"},
		"assertion with Sub":              {jwtBearer + "&" + jwt(`{"Sub":"a"}`), "not in lower case"},
		"assertion with sub twice":        {jwtBearer + "&" + jwt(`{"sub":"a","sub":"a"}`), "same name twice"},
		"assertion with a bad sub":        {jwtBearer + "&" + jwt(`{"sub":"a\u0000"}`), "client_id is not valid UTF-8"},
		"assertion with a long sub":       {jwtBearer + "&" + jwt(`{"sub":"`+long+`"}`), "longer than 255"},
		"assertion with a line break":     {jwtBearer + "&" + jwt(`{"sub":"a"}`) + "%0A", "client_assertion is not valid UTF-8"},
		"its issuer and body that differ": {jwtBearer + "&client_id=b&" + jwt(`{"iss":"a","sub":"a"}`), "different clients"},
		"assertion whose iss is a list":   {jwtBearer + "&" + jwt(`{"sub":"a","iss":["a"]}`), "claim iss of the client_assertion is not a string"},
		"assertion with Iss":              {jwtBearer + "&" + jwt(`{"sub":"a","Iss":"a"}`), "not in lower case"},
		"assertion with iss twice":        {jwtBearer + "&" + jwt(`{"sub":"a","iss":"a","iss":"b"}`), "same name twice"},
		"assertion and body that differ":  {jwtBearer + "&client_id=b&" + jwt(`{"sub":"a"}`), "different clients"},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, form(), "", c.body, c.why) })
	}
}

func TestRefusesQuery(t *testing.T) {
	for query, why := range map[string]string{
		"client_id=a":               "client_id belongs in the body",
		"tenant=a&client_id":        "client_id belongs in the body",
		"client_secret=a":           "client_secret belongs in the body",
		"grant_type=password":       "grant_type belongs in the body",
		"username=a":                "username belongs in the body",
		"refresh_token=a":           "refresh_token belongs in the body",
		"code=a":                    "code belongs in the body",
		"client_assertion=a":        "client_assertion belongs in the body",
		"client_assertion_type=a":   "client_assertion_type belongs in the body",
		"%63ode=a":                  "code belongs in the body",
		"Client.ID=a":               "taken for client_id",
		"tenant=a;client_id=b":      "semicolon",
		"tenant=%":                  "percent sign",
		strings.Repeat("a&", 1001):  "more than 1000",
		"tenant=a&username[x][y]=z": "taken for username",
	} {
		t.Run(query[:min(len(query), 30)], func(t *testing.T) { wantRefused(t, form(), query, "", why) })
	}
}

func TestRefusesHeader(t *testing.T) {
	for name, c := range map[string]struct {
		header http.Header
		why    string
	}{
		"two Authorization fields":      {form("Authorization", exampleBasic, "Authorization", "Bearer a"), "more than one Authorization"},
		"Basic and body that differ":    {form("Authorization", basic("b:s")), "different clients"},
		"Basic and body: a form apart":  {form("Authorization", basic("client%5F:s")), "different clients"},
		"Basic alone":                   {form("Authorization", "Basic"), "not well-formed"},
		"Basic without credentials":     {form("Authorization", "Basic "), "not well-formed"},
		"Basic without a colon":         {form("Authorization", basic("a")), "not well-formed"},
		"Basic without a client":        {form("Authorization", basic(":secret")), "not well-formed"},
		"Basic of no base64":            {form("Authorization", "Basic a*b"), "not well-formed"},
		"Basic and a space within":      {form("Authorization", "Basic YT pi"), "not well-formed"},
		"Basic padded within":           {form("Authorization", "Basic YTo=YTpi"), "not well-formed"},
		"Basic and spaces alone":        {form("Authorization", "Basic   "), "not well-formed"},
		"spaces, and body that differs": {form("Authorization", "Basic  Yjpz"), "different clients"},
		"Basic in base64url":            {form("Authorization", "Basic Pz8_Og=="), "not well-formed"},
		"Spring: Basic and anything":    {form("Authorization", "BasicXYTpi"), "not well-formed"},
		"Basic behind a space":          {form("Authorization", " Basic YQ=="), "not well-formed"},
		"Basic with a bad escape":       {form("Authorization", basic("a%:b")), "not well-formed"},
		"Basic with a control":          {form("Authorization", basic("a%00:b")), "client_id is not valid UTF-8"},
		"Basic with a space in front":   {form("Authorization", basic(" a:b")), "client_id has a space"},
		"Basic with a long client":      {form("Authorization", basic(strings.Repeat("x", 256)+":b")), "longer than 255"},
		"very long Basic":               {form("Authorization", basic("a:"+strings.Repeat("x", 8192))), "not well-formed"},
		"compressed":                    {form("Content-Encoding", "gzip"), "compressed"},
		"compressed twice":              {form("Content-Encoding", "identity", "Content-Encoding", "br"), "compressed"},
		"no content type":               {header(), "content type must be"},
		"empty content type":            {header("Content-Type", ""), "content type must be"},
		"multipart":                     {header("Content-Type", "multipart/form-data; boundary=a"), "content type must be"},
		"text":                          {header("Content-Type", "text/plain"), "content type must be"},
		"JSON of some kind":             {header("Content-Type", "application/vnd.api+json"), "content type must be"},
		"two content types":             {header("Content-Type", formType, "Content-Type", "application/json"), "more than one Content-Type"},
		"two content types in one":      {header("Content-Type", formType+", application/json"), "malformed"},
		"another charset":               {header("Content-Type", formType+"; charset=iso-8859-2"), "charset of the Content-Type"},
		"another charset of JSON":       {header("Content-Type", "application/json; charset=iso-8859-1"), "charset of the Content-Type"},
		"UTF-16":                        {header("Content-Type", formType+"; charset=utf-16"), "charset of the Content-Type"},
		"charset twice":                 {header("Content-Type", formType+"; charset=utf-8; charset=utf-7"), "malformed"},
		"a proxy drops the type":        {form("Connection", "close, content-TYPE"), "The Connection header names"},
		"a proxy drops the client":      {form("Connection", "close", "Connection", "\tauthorization"), "The Connection header names"},
		"a charset in an attribute":     {header("Content-Type", formType+`; x="a; charset=utf-16"`), "charset of the Content-Type"},
		"a charset by its name alone":   {header("Content-Type", formType+"; xcharset=utf-16"), "charset of the Content-Type"},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, c.header, "", "client_id=a", c.why) })
	}
}

// Bytes that are not ASCII stand for other characters in ISO-8859-1.
func TestRefusesOtherThanASCII(t *testing.T) {
	for body, why := range map[string]string{
		"grant_type=password&username=%c3%bc":   "username is not ASCII",
		"grant_type=password&username=j%fcrgen": "username is not ASCII",
		"client_id=\u00fc":                      "client_id is not ASCII",
		"client_id=a&client_id%ff=b":            "name of a parameter is not valid UTF-8",
		"client_id=a&%a0username=b":             "name of a parameter is not valid UTF-8",
	} {
		t.Run(body, func(t *testing.T) {
			wantRefused(t, header("Content-Type", formType+"; charset=ISO-8859-1"), "", body, why)
		})
	}
}
