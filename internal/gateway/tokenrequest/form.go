package tokenrequest

import "bytes"

// maxParams bounds the number of parameters in a form. By default, PHP and Tomcat ignore further
// parameters.
const maxParams = 1000

// checkQuery refuses judged parameters in the query of the URL (RFC 6749 3.2). Servlet containers
// merge the query with the body.
func checkQuery(query []byte) error {
	return eachParam(query, func(n name, _ []byte) error {
		if n != unjudged {
			return refuse("The parameter " + nameTexts[n] + " belongs in the body, not in the query.")
		}
		return nil
	})
}

// readForm parses application/x-www-form-urlencoded.
func (p *params) readForm(body []byte) error {
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		return refuse("The body begins with a byte order mark.")
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) { // servers that decode JSON often ignore the type
		return refuse("The body is JSON, and its type says that it is a form.")
	}
	return eachParam(body, func(n name, value []byte) error {
		if n == unjudged {
			return nil
		}
		value, p.space = unescaped(value, p.space)
		return p.set(n, value)
	})
}

// eachParam calls each for every parameter of a form, with the value as sent.
func eachParam(form []byte, each func(n name, value []byte) error) error {
	for count := 1; len(form) > 0; count++ {
		var param []byte
		param, form = cut(form, '&')
		n, value, err := readParam(param)
		switch {
		case err != nil:
			return err
		case count > maxParams:
			return refuse("There are more than 1000 parameters.")
		}
		if err := each(n, value); err != nil {
			return err
		}
	}
	return nil
}

// readParam parses one parameter. It returns the name, and the value as sent.
func readParam(param []byte) (n name, value []byte, err error) {
	if !isEscaped(param) {
		return unjudged, nil, refuse("The parameters are not form-encoded: a percent sign without two hexadecimal digits.")
	}
	if bytes.IndexByte(param, ';') >= 0 {
		if err := checkSemicolons(param); err != nil {
			return unjudged, nil, err
		}
	}
	n, value, err = splitParam(param)
	return n, value, err
}

func splitParam(param []byte) (n name, value []byte, err error) {
	var space [64]byte
	text, value := cut(param, '=')
	text, _ = unescaped(text, space[:0])
	n, err = findName(text)
	return n, value, err
}

// checkSemicolons refuses a parameter that contains a judged one, if semicolons separate parameters
// as well (HTML 4.01 B.2.2).
func checkSemicolons(param []byte) error {
	for len(param) > 0 {
		var part []byte
		part, param = cut(param, ';')
		if n, _, err := splitParam(part); err != nil || n != unjudged {
			return refuse("A semicolon stands where it could separate parameters. Write it as %3B.")
		}
	}
	return nil
}

// cut is like bytes.Cut with a single byte. It avoids allocating a separator.
func cut(b []byte, separator byte) (before, after []byte) {
	if at := bytes.IndexByte(b, separator); at >= 0 {
		return b[:at], b[at+1:]
	}
	return b, nil
}

// isEscaped reports whether every percent sign is followed by two hexadecimal digits.
func isEscaped(b []byte) bool {
	for {
		at := bytes.IndexByte(b, '%')
		if at < 0 {
			return true
		}
		if len(b) < at+3 || hexDigit(b[at+1]) > 15 || hexDigit(b[at+2]) > 15 {
			return false
		}
		b = b[at+3:]
	}
}

// unescaped decodes form-encoded text for which [isEscaped] is true. It returns text itself if
// there is nothing to decode. Otherwise it appends the result to space, or to a new buffer if space
// is too small, and returns the buffer as rest.
func unescaped(text, space []byte) (plain, rest []byte) {
	if bytes.IndexByte(text, '%') < 0 && bytes.IndexByte(text, '+') < 0 {
		return text, space
	}
	if cap(space)-len(space) < len(text) {
		space = make([]byte, 0, max(len(text), 256))
	}
	begin := len(space)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '+':
			space = append(space, ' ')
		case '%':
			space = append(space, hexDigit(text[i+1])<<4|hexDigit(text[i+2]))
			i += 2
		default:
			space = append(space, c)
		}
	}
	return space[begin:len(space):len(space)], space
}

// hexDigit returns the value of a hexadecimal digit, or 0xff for anything else.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}
