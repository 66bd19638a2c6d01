package secret

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// Attack (guessing): Weak passwords. Short and guessable passwords are refused, also with
// substituted letters. Also accounts.TestValidatePassword.
func TestGuessable(t *testing.T) {
	common, err := commonWords()
	check.OK(t, err)
	words := dictionary{common, partsOf([]string{"ada.lovelace@example.org", "ada"})}
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
		if bits := guessBits(words, password); bits < leastBits != want {
			t.Errorf("%.40q: %.1f bits, guessable is to be %v", password, bits, want)
		}
	}
	for name, want := range map[string]bool{"Xk4mz9qw@example.org": true, "user": false} {
		if got, err := Guessable("Xk4mz9qw", name); got != want || err != nil {
			t.Errorf("Guessable() for %s = %v, %v", name, got, err)
		}
	}
}

// BenchmarkGuessable uses the longest password, made of the characters that substitute the most
// letters.
func BenchmarkGuessable(b *testing.B) {
	worst := strings.Repeat("4@8({[</369&#!1/|0$5+7%2/p@5$w0rd", MaxPasswordLength)[:MaxPasswordLength]
	for b.Loop() {
		if _, err := Guessable(worst, "ada"); err != nil {
			b.Fatal(err)
		}
	}
}
