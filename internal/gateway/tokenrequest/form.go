package tokenrequest

import (
	"net/url"
	"strings"
)

// maxParams bounds the number of parameters in a form. By default, PHP and Tomcat ignore further
// parameters.
const maxParams = 1000

// checkQuery refuses checked parameters in the query of the URL (RFC 6749 3.2). Servlet containers
// merge the query with the body.
func checkQuery(query string) error {
	return eachParam(query, func(n name, _, _ string) error {
		if n != other {
			return refuse("The parameter " + nameTexts[n] + " belongs in the body, not in the query.")
		}
		return nil
	})
}

// readForm parses application/x-www-form-urlencoded.
func (p *params) readForm(body string) error {
	if strings.HasPrefix(body, "\ufeff") {
		return refuse("The body begins with a byte order mark.")
	}
	if strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "{") { // servers that decode JSON often ignore the type
		return refuse("The body is JSON, but its content type is a form.")
	}
	return eachParam(body, func(n name, text, value string) error {
		switch {
		case n != other:
			return p.set(n, value)
		case text == "password":
			p.passwords = append(p.passwords, value)
		}
		return nil
	})
}

// eachParam calls each for every parameter of a form, with its decoded name and value.
func eachParam(form string, each func(n name, text, value string) error) error {
	if form == "" {
		return nil
	}
	count := 0
	for param := range strings.SplitSeq(form, "&") {
		if count++; count > maxParams {
			return refuse("There are more than 1000 parameters.")
		}
		n, text, value, err := readParam(param)
		if err != nil {
			return err
		}
		if err := each(n, text, value); err != nil {
			return err
		}
	}
	return nil
}

// readParam parses one parameter. It refuses a parameter that contains a checked one, if semicolons
// separate parameters as well (HTML 4.01 B.2.2).
func readParam(param string) (n name, text, value string, err error) {
	if strings.Contains(param, ";") {
		for part := range strings.SplitSeq(param, ";") {
			if n, _, _, err := splitParam(part); err != nil || n != other {
				return other, "", "", refuse("A semicolon could be read as a separator. Write it as %3B.")
			}
		}
	}
	return splitParam(param)
}

func splitParam(param string) (n name, text, value string, err error) {
	text, value, _ = strings.Cut(param, "=")
	if text, err = unescaped(text); err != nil {
		return other, "", "", err
	}
	if value, err = unescaped(value); err != nil {
		return other, "", "", err
	}
	n, err = findName(text)
	return n, text, value, err
}

// unescaped decodes form-encoded text.
func unescaped(text string) (string, error) {
	decoded, err := url.QueryUnescape(text)
	if err != nil {
		return "", refuse("The parameters are not form-encoded: a percent sign lacks two hexadecimal digits.")
	}
	return decoded, nil
}
