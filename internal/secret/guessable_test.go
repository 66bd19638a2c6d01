package secret

import (
	"strings"
	"testing"
)

func TestGuessable(t *testing.T) {
	for password, want := range map[string]bool{
		"password1": true, "Password123!": true, "P@ssw0rd2024": true, "12345678": true, "qwertyuiop": true, "1qaz2wsx": true,
		"iloveyou": true, "trustno1": true, "Summer2026!": true, "lovelace1815": true, "My$tr0ngP4$$": true, "abcdefgh": true,
		"zyxwvuts": true, "aaaaaaaaaaaa": true, "passwordpassword": true, "ABCabc123": true, "monkey12": true,
		"ada-ada-ada": true, "Ada.Lovelace": true, "lovelace!!": true, "adalovelace99": true, strings.Repeat("ab", 500): true,
		"admin2026": true, "letmein!!": true, "07041776": true, "........": true, "": true,

		"correct horse battery staple": false, "Xk4mz9qw": false, "a7f3k2m9p1qz": false, "harborLantern2026": false,
		"pässwörd für daheim": false, "山田の猫は白い": false, "tangerine walrus fence": false, "vQ7!nd02": false,
		strings.Repeat("a", 40) + New(): false, New(): false,
	} {
		got, err := Guessable(password, "ada.lovelace@example.org", "ada")
		if err != nil || got != want {
			words, _ := commonWords()
			t.Errorf("Guessable(%.40q) = %v, %v; %.1f bits without the username", password, got, err, guessBits(words, password))
		}
	}
}

// BenchmarkGuessable judges the longest password, of the characters that stand for most letters.
func BenchmarkGuessable(b *testing.B) {
	worst := strings.Repeat("4@8({[</369&#!1/|0$5+7%2/p@5$w0rd", MaxPasswordLength)[:MaxPasswordLength]
	for b.Loop() {
		if _, err := Guessable(worst, "ada"); err != nil {
			b.Fatal(err)
		}
	}
}
