package subject_test

import (
	"fmt"
	"time"

	"oauth-server/internal/gateway/subject"
)

// A user signs in. A later refresh leads to the same user although its answer names no user.
func Example() {
	reader, err := subject.NewReader("preferred_username")
	if err != nil {
		fmt.Println(err)
		return
	}
	memory := subject.NewMemory(0)
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

	signedIn := reader.Read([]byte(`{"id_token":"` + jwt(`{"sub":"1","preferred_username":"alice"}`) + `","refresh_token":"r1"}`))
	fmt.Println(signedIn.Subject, signedIn.Reason)
	memory.Put(now, signedIn.Refresh, "app", signedIn.Subject, signedIn.Expires(now))

	user, ok := memory.Get(now, subject.DigestOf("r1"), "app")
	fmt.Println(user, ok)
	refreshed := reader.Read([]byte(`{"access_token":"opaque","refresh_token":"r2"}`))
	fmt.Println(refreshed.Reason)
	memory.Put(now, refreshed.Refresh, "app", user, refreshed.Expires(now))

	fmt.Println(memory.Get(now, subject.DigestOf("r2"), "app"))
	fmt.Println(memory.Get(now, subject.DigestOf("r2"), "another"))
	// Output:
	// alice known
	// alice true
	// no_jwt
	// alice true
	//  false
}
