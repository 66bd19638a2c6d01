package clientcfg

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"oauth-server/internal/secret"
)

// scanner reads JSON without spaces, escapes and null. Anything else makes it fail. The texts that it returns
// are parts of the value.
type scanner struct {
	value  string
	at     int
	failed bool
}

// next reports whether the byte is the next one, and reads it then.
func (in *scanner) next(b byte) bool {
	if in.failed || in.at >= len(in.value) || in.value[in.at] != b {
		return false
	}
	in.at++
	return true
}

// skip reads a byte.
func (in *scanner) skip(b byte) {
	if !in.next(b) {
		in.failed = true
	}
}

// done reports whether the whole value was read.
func (in *scanner) done() bool { return !in.failed && in.at == len(in.value) }

// object calls member with each name, to read the value.
func (in *scanner) object(member func(name string)) {
	in.skip('{')
	if in.next('}') {
		return
	}
	for !in.failed {
		name := in.text()
		in.skip(':')
		if in.failed {
			return
		}
		member(name)
		if !in.next(',') {
			in.skip('}')
			return
		}
	}
}

// textsOf reads a list of texts.
func textsOf[T ~string](in *scanner) []T {
	in.skip('[')
	if in.next(']') {
		return []T{}
	}
	rest := in.value[in.at:]
	list := make([]T, 0, strings.Count(rest[:strings.IndexByte(rest, ']')+1], ",")+1) // about
	for !in.failed {
		list = append(list, T(in.text()))
		if !in.next(',') {
			in.skip(']')
			break
		}
	}
	return list
}

func (in *scanner) text() string {
	in.skip('"')
	rest := in.value[in.at:]
	end := strings.IndexByte(rest, '"')
	if in.failed || end < 0 {
		in.failed = true
		return ""
	}
	in.at += end + 1
	in.failed = strings.IndexByte(rest[:end], '\\') >= 0 || !utf8.ValidString(rest[:end])
	return rest[:end]
}

func (in *scanner) time() time.Time {
	t, err := time.Parse(time.RFC3339, in.text())
	in.failed = in.failed || err != nil
	return t
}

func (in *scanner) digest() (d secret.Digest) {
	text := in.text()
	if len(text) != 2*len(d) {
		in.failed = true
		return d
	}
	for i := range d {
		high, low := hexDigit(text[2*i]), hexDigit(text[2*i+1])
		in.failed = in.failed || high|low > 15
		d[i] = high<<4 | low
	}
	return d
}

// hexDigit returns the value of a digit; more than 15: it is none.
func hexDigit(b byte) byte {
	switch {
	case '0' <= b && b <= '9':
		return b - '0'
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10
	}
	return 0xff
}

func (in *scanner) boolean() bool {
	rest := in.value[in.at:]
	if strings.HasPrefix(rest, "true") {
		in.at += len("true")
		return true
	}
	if !strings.HasPrefix(rest, "false") {
		in.failed = true
		return false
	}
	in.at += len("false")
	return false
}

func (in *scanner) integer() int64 {
	end := in.at
	for end < len(in.value) && (in.value[end] == '-' || '0' <= in.value[end] && in.value[end] <= '9') {
		end++
	}
	n, err := strconv.ParseInt(in.value[in.at:end], 10, 64)
	in.at, in.failed = end, in.failed || err != nil
	return n
}
