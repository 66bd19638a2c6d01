package httpapi

import "strings"

// scopeText is one line of the consent page.
type scopeText struct {
	Text, Scope string
	New         bool // the user has not allowed it before
}

// scopeTexts returns descriptions of the scopes. Even a token without scopes reveals the user, so
// in that case this is the only line.
func (s *Server) scopeTexts(scopes []string) []scopeText {
	if len(scopes) == 0 {
		return []scopeText{{Text: "Know who you are (your user name)"}}
	}
	texts := make([]scopeText, len(scopes))
	for i, scope := range scopes {
		texts[i] = s.scopeText(scope)
	}
	return texts
}

// scopeText describes one scope and, unless the text quotes it, adds its name.
func (s *Server) scopeText(scope string) scopeText {
	if text := s.o.ScopeTexts[scope]; text != "" {
		return scopeText{Text: text, Scope: scope}
	}
	if text, ok := wordsOf(scope); ok {
		return scopeText{Text: text, Scope: scope}
	}
	return scopeText{Text: "Use “" + scope + "”"}
}

// scopeVerbs maps the action words in scopes to verbs for the page.
var scopeVerbs = map[string]string{
	"read": "Read", "view": "See", "list": "List", "write": "Change", "edit": "Change", "update": "Change",
	"create": "Create", "add": "Add", "delete": "Delete", "send": "Send", "manage": "Manage", "admin": "Administer",
}

// wordsOf splits a scope into action and object, in either order: "orders:read" and "read.orders"
// become "Read orders". ok is false if the scope has another form.
func wordsOf(scope string) (text string, ok bool) {
	words := strings.FieldsFunc(scope, func(r rune) bool { return strings.ContainsRune(":._/-", r) })
	if len(words) == 0 {
		return "", false
	}
	last := len(words) - 1
	if verb := scopeVerbs[strings.ToLower(words[last])]; verb != "" {
		return phrase(verb, words[:last]), true
	}
	if verb := scopeVerbs[strings.ToLower(words[0])]; verb != "" {
		return phrase(verb, words[1:]), true
	}
	return "", false
}

func phrase(verb string, object []string) string {
	if len(object) == 0 {
		return verb + " your data"
	}
	return verb + " " + strings.Join(object, " ")
}
