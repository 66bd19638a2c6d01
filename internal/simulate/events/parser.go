package events

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"oauth-server/internal/simulate/traffic"
)

// The fields of a line that a parser looks for.
const (
	keyClient = iota
	keyTime
	keyUser
	keyGrant
	keyStatus
	keySource
	keyScope
	keyLifetime // seconds, or the time of its end
	keyKind     // the type of the entry
	keyLogged   // time of the line around an entry, for entries without a time
	keyTook     // milliseconds that the request took, if the time is that of its end
	keyCount

	mappable = keyKind // the keys before it can be in a [Mapping]
)

var keyNames = [keyCount]string{"client", "time", "user", "grant", "status", "source", "scope", "lifetime", "kind", "logged", "took"}

// parser reads the token requests of a log, one line at a time.
type parser struct {
	scanner
	root   *node
	clock  *clock
	decode func(line []byte) *problem // fills in the values
	table  *table                     // nil: the log is not a table

	slot    [keyCount]int // 0: the log does not have the field
	entries map[string]entry
	rules   []compiledRule

	foreign         *problem // of a line that is not of the format
	missing, noTime *problem // of a request without a client, or a time
	badTime         *problem
	noUser          *problem // of a request of a user without the user; nil: it is read
}

// entry is what a type of log entries stands for.
type entry struct {
	grant  string
	failed bool
}

// effect is what a rule does with an entry.
type effect struct {
	problem         *problem // may be skip; nil: none
	grant           string   // for entries without a grant; the first rule counts
	failed, unknown bool
}

// compiledRule is an effect on entries that meet all conditions.
type compiledRule struct {
	effect
	when []wanted
}

// wanted is a condition on the text in a slot.
type wanted struct {
	slot int
	condition
}

// newParser returns the parser of a format. head is the beginning of the log.
func newParser(f Format, m *Mapping, head []byte) (*parser, error) {
	p := &parser{}
	switch f {
	case JSON:
		return p, p.mapJSON(m)
	case CSV:
		return p, p.mapTable(m, head)
	case Common, Combined:
		return p, p.mapWeb(m, f)
	default:
		p.use(presets[f])
		return p, nil
	}
}

// parse reads one line into the request, which is zero before. It returns nil, or the problem of
// the line.
func (p *parser) parse(line []byte, r *traffic.Request) *problem {
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 {
		return skip
	}
	if p.table == nil {
		line = trimmed
	}
	if bad := p.decode(line); bad != nil {
		return bad
	}
	return p.request(r)
}

// decodeJSON fills in the values from an object.
func (p *parser) decodeJSON(line []byte) *problem {
	bad := p.line(line, p.root)
	if bad == nil && !slices.ContainsFunc(p.values, value.present) {
		return p.foreign
	}
	return bad
}

// request makes a request of the values.
func (p *parser) request(r *traffic.Request) *problem {
	var all effect
	for i := range p.rules {
		rule := &p.rules[i]
		if !p.meets(rule.when) {
			continue
		}
		if rule.problem != nil {
			return rule.problem
		}
		if all.grant == "" {
			all.grant = rule.grant
		}
		all.failed, all.unknown = all.failed || rule.failed, all.unknown || rule.unknown
	}
	kind, known := p.entries[string(p.text(keyKind))]
	if !known && p.entries != nil {
		return skip
	}
	if bad := p.time(r); bad != nil {
		return bad
	}
	r.Client, r.Grant = p.string(keyClient), p.string(keyGrant)
	for _, grant := range []string{all.grant, kind.grant} {
		if r.Grant == "" {
			r.Grant = grant
		}
	}
	if r.Grant != clientCredentials {
		r.User = p.string(keyUser)
	}
	r.Failed, r.Unknown = all.failed || kind.failed || failed(p.text(keyStatus)), all.unknown
	r.Scope = strings.ReplaceAll(p.string(keyScope), ", ", " ")
	r.Source = parseAddr(p.string(keySource))
	r.Lifetime = p.lifetime(r.At)
	switch {
	case p.noUser != nil && !r.Failed && !r.Unknown && r.User == "" && r.Grant != "" && r.Grant != clientCredentials:
		return p.noUser
	case r.Client == "" && r.Failed:
		return skip // it concerns no client
	case r.Client == "":
		return p.missing
	}
	return nil
}

// clientCredentials is the grant without a user.
const clientCredentials = "client_credentials"

// text returns the text of a field. It is valid until the next line.
func (p *parser) text(key int) []byte { return p.values[p.slot[key]].text() }

// string returns the text of a field; "" if the field is absent.
func (p *parser) string(key int) string { return string(p.text(key)) }

func (p *parser) has(key int) bool { return p.values[p.slot[key]].present() }

// time reads the time of a request. For a line without a time it is the time of its collection.
func (p *parser) time(r *traffic.Request) *problem {
	text := p.text(keyTime)
	if len(text) == 0 {
		text = p.text(keyLogged)
	}
	if len(text) == 0 {
		text = p.clock.stamp
	}
	if len(text) == 0 {
		return p.noTime
	}
	at, ok := p.clock.time(text)
	if p.clock.missing {
		return &problem{p.badTime.field, "does not exist in the time zone because of daylight saving: see --zone"}
	}
	if p.has(keyTook) {
		// The request counts when it arrives, which matters most if it has to wait.
		at = at.Add(-seconds(p.text(keyTook)) / 1000)
	}
	if !ok || at.Year() < firstYear {
		return p.badTime
	}
	r.At = at
	return nil
}

// lifetime returns how long the token lives; 0 if that is not in the log.
func (p *parser) lifetime(from time.Time) time.Duration {
	text := p.text(keyLifetime)
	if bytes.IndexByte(text, '-') <= 0 {
		return seconds(text).Round(time.Second)
	}
	end, ok := parseTime(text, p.clock.zone)
	if !ok || end.Before(from) {
		return 0
	}
	return end.Sub(from).Round(time.Second)
}

// seconds reads a number of seconds; 0 if there is none.
func seconds(text []byte) time.Duration {
	if len(text) == 0 {
		return 0
	}
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(n >= 0 && n <= 1e9) { // it may be NaN
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// meets reports whether the values meet all conditions.
func (p *parser) meets(all []wanted) bool {
	for i := range all {
		if w := &all[i]; !w.matches(p.values[w.slot].text()) {
			return false
		}
	}
	return true
}

// failed reports whether a request with that status failed for another reason than a limit. Such a
// status is an HTTP status of 400 or higher except 429, with or without its reason, a class such as
// 4xx, or a word that does not mean success.
func failed(status []byte) bool {
	if len(status) == 0 || string(status) == "SUCCESS" { // the most frequent ones
		return false
	}
	text := strings.Trim(string(status), " \"'+")
	if rest, isLine := strings.CutPrefix(text, "HTTP/"); isLine {
		_, text, _ = strings.Cut(rest, " ")
	}
	rest := strings.TrimLeft(text, "0123456789")
	n, err := strconv.Atoi(text[:len(text)-len(rest)])
	switch {
	case err == nil && strings.EqualFold(rest, "xx"):
		return n >= 4
	case err == nil && (rest == "" || !unicode.IsLetter(rune(rest[0]))):
		return n >= 400 && n != 429 || n > 0 && n < 100
	}
	switch strings.ToLower(text) {
	case "", "-", "ok", "success", "successful", "succeeded", "true", "allow", "allowed", "none", "null", "nan":
		return false
	}
	return true
}
