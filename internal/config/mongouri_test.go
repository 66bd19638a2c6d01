package config

import (
	"strings"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/mongo/options"
)

// URIs that the driver refuses are refused here, apart from their options. URIs that it can use are
// accepted.
func TestMongoURI(t *testing.T) {
	const password = "s3cret"
	for uri, want := range map[string]string{
		"mongodb://localhost":                                   "",
		"mongodb://db1,db2:27018,db3/?replicaSet=rs0":           "",
		"mongodb://me:" + password + "@db1:27017,db2/oauth?w=1": "",
		"mongodb://me:a%3Ab%2Fc%40d%25@[::1]:27017/":            "",
		"mongodb://[::1]":                                       "",
		"mongodb://me@h":                                        "",
		"mongodb://%2Ftmp%2Fmongodb-27017.sock":                 "",
		"mongodb://user:" + password + "@":                      "must name hosts",
		"mongodb://":                                            "must name hosts",
		"mongodb://,/":                                          "must name hosts",
		"mongodb://h:port":                                      "must name hosts",
		"mongodb://h:0":                                         "must name hosts",
		"mongodb://h:65536":                                     "must name hosts",
		"mongodb://h,g:1:2":                                     "must name hosts",
		"mongodb://::1":                                         "must name hosts",
		"mongodb://me:x@" + password + ":y/z@h":                 "must name hosts",
		"mongodb://me:" + password + "@x@h":                     "percent-encode special",
		"mongodb://me:" + password + ":x@h":                     "percent-encode special",
		"mongodb://me:" + password + "/x@h":                     "percent-encode special",
		"mongodb://h/?appName=me@h":                             "percent-encode special",
		"mongodb://me:" + password + "%zz@h":                    "two hexadecimal digits",
		"mongodb://h/%zz":                                       "two hexadecimal digits",
		"mongodb://h?w=1":                                       "put a /",
		"mongodb:/h":                                            "must begin with mongodb://",
		password:                                                "must begin with mongodb://",
		"postgres://me:" + password + "@h":                      "must begin with mongodb://",
		"":                                                      "is required",
	} {
		got := uriProblem(uri)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
		if strings.Contains(got, password) {
			t.Errorf("%s: %q repeats the password", uri, got)
		}
		if refused := driver.Client().ApplyURI(uri).Validate(); (refused != nil) != (want != "") {
			t.Errorf("%s: the driver says %v", uri, refused)
		}
	}
	// For these URIs, the driver would query the DNS.
	for uri, want := range map[string]string{
		"mongodb+srv://me:x@db.example/?w=1":     "",
		"mongodb+srv://me:x@db:a":                "must name hosts",
		"mongodb://user:" + password + "@[bad":   "must name hosts",
		"mongodb://user:" + password + "@[::1,h": "must name hosts",
	} {
		if got := uriProblem(uri); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}
