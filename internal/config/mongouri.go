package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// uriProblem returns the problem of a MongoDB connection string, or an empty text. It applies the
// rules of the driver, which only the store imports. The driver checks the options when it
// connects. The problem repeats no part of the string: in a malformed one, any part may belong to
// the password.
func uriProblem(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	user, hosts, found := strings.Cut(rest, "@")
	if !found {
		user, hosts = "", rest
	}
	end := strings.IndexAny(hosts+"/", "/?@")
	hosts, after := hosts[:end], hosts[end:]
	_, escapes := url.PathUnescape(uri)
	switch {
	case uri == "":
		return "is required, such as mongodb://localhost:27017"
	case scheme != "mongodb" && scheme != "mongodb+srv":
		return "must begin with mongodb:// or mongodb+srv://"
	case strings.Contains(user, "/") || strings.Count(user, ":") > 1 || strings.HasPrefix(after, "@"):
		return "is not valid: percent-encode special characters in the user name and password"
	case escapes != nil:
		return "is not valid: % must be followed by two hexadecimal digits; write a literal % as %25"
	case strings.HasPrefix(after, "?"):
		return "is not valid: put a / between the hosts and the ?"
	case strings.Trim(hosts, ",") == "" || !allHosts(hosts):
		return "is not valid: it must name hosts, such as mongodb://db1:27017,db2"
	}
	return ""
}

func allHosts(list string) bool {
	return !slices.ContainsFunc(strings.Split(list, ","), func(host string) bool {
		host, escapes := url.QueryUnescape(host)
		_, port, err := net.SplitHostPort(host)
		if err != nil { // perhaps only because the port is missing
			_, port, err = net.SplitHostPort(host + ":27017")
		}
		n, notNumber := strconv.ParseUint(port, 10, 16)
		return escapes != nil || err != nil || port != "" && (notNumber != nil || n == 0)
	})
}
