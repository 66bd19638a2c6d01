package httpapi

import "strings"

// scopeText is one line of the consent page.
type scopeText struct{ Text, Scope string }

// scopeTexts puts scopes into words. Without any scope a token still says who
// the user is, and that is said.
func (s *Server) scopeTexts(scopes []string) []scopeText {
	if len(scopes) == 0 {
		return []scopeText{{Text: "Know who you are (your user name)"}}
	}
	texts := make([]scopeText, len(scopes))
	for i, scope := range scopes {
		text := s.o.ScopeTexts[scope]
		if text == "" {
			text = wordsOf(scope)
		}
		texts[i] = scopeText{Text: text, Scope: scope}
	}
	return texts
}

// scopeVerbs are the words by which scopes name an action.
var scopeVerbs = map[string]string{
	"read": "Read", "view": "See", "list": "List", "write": "Change", "edit": "Change", "update": "Change",
	"create": "Create", "add": "Add", "delete": "Delete", "send": "Send", "manage": "Manage", "admin": "Administer",
}

// wordsOf reads a scope as action and object, in either order: "orders:read"
// and "read.orders" are "Read orders". Anything else is shown as it is.
func wordsOf(scope string) string {
	words := strings.FieldsFunc(scope, func(r rune) bool { return strings.ContainsRune(":._/-", r) })
	if len(words) == 0 {
		return "Use “" + scope + "”"
	}
	last := len(words) - 1
	if verb := scopeVerbs[strings.ToLower(words[last])]; verb != "" {
		words = words[:last]
		return phrase(verb, words)
	}
	if verb := scopeVerbs[strings.ToLower(words[0])]; verb != "" {
		return phrase(verb, words[1:])
	}
	return "Use “" + scope + "”"
}

func phrase(verb string, object []string) string {
	if len(object) == 0 {
		return verb + " your data"
	}
	return verb + " " + strings.Join(object, " ")
}
