package e2e

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// consentPage signs a browser in and opens a consent page for the client.
func consentPage(b *browser, c *oauth2.Config, verifier string) url.Values {
	b.tb.Helper()
	b.open(c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)))
	if b.has("/sign-in") {
		b.submit("/sign-in", "username", user, "password", password)
	}
	form := b.form("/consent").fields
	form.Set("decision", "allow")
	return form
}

// consents sends pages, each to one of the servers, at the same time, and returns how often each code
// came back, and how many answers had each status.
func consents(tb testing.TB, jar http.CookieJar, servers []string, forms []url.Values) (codes map[string]int, statuses map[int]int) {
	tb.Helper()
	client := newHTTPClient(tb)
	client.Jar = jar
	codes, statuses = map[string]int{}, map[int]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, form := range forms {
		all.Go(func() {
			req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, servers[i%len(servers)]+"/consent", strings.NewReader(form.Encode()))
			if err != nil {
				tb.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			res, err := client.Do(req)
			if err != nil {
				tb.Error(err)
				return
			}
			page, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			statuses[res.StatusCode]++
			switch res.StatusCode {
			case http.StatusSeeOther:
				to, err := res.Location()
				if err != nil || to.Query().Get("code") == "" {
					tb.Errorf("%v: sent to %v", err, to)
					return
				}
				codes[to.Query().Get("code")]++
			case http.StatusTooManyRequests:
				if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err != nil || seconds <= 0 ||
					!strings.Contains(string(page), "Your decision was not recorded") {
					tb.Errorf("Retry-After: %d, %v\n%s", seconds, err, page)
				}
			default:
				tb.Errorf("status %d:\n%s", res.StatusCode, page)
			}
		})
	}
	all.Wait()
	return codes, statuses
}

func repeated(form url.Values, n int) (forms []url.Values) {
	for range n {
		forms = append(forms, form)
	}
	return forms
}

// TestConsentPageGivesOneCode answers one page 200 times at once, and then again.
//
// Attack (consent): Many codes from one consent. A consent page gives one code, on all
// instances. Codes per session are limited. Also e2e.TestConsentPageGivesOneCodeOnTwoInstances,
// grants.TestConsentPageIsUsedUp, e2e.TestCodesOfASessionAreLimited,
// grants.TestCodesWithoutPagesAreLimited.
func TestConsentPageGivesOneCode(t *testing.T) {
	s := start(t, unlimited+tenCodes)
	b, c, verifier := newBrowser(t), s.config("native"), oauth2.GenerateVerifier()
	page := consentPage(b, c, verifier)
	codes, statuses := consents(t, b.client.Jar, []string{s.Issuer}, repeated(page, 200))
	check.Equal(t, "codes", len(codes), 1)
	requireBounded(t, statuses, 10, 100)
	for code := range codes {
		_, err := c.Exchange(with(t), code, oauth2.VerifierOption(verifier))
		check.OK(t, err)
	}
}

// tenCodes is a limit of codes that tests reach.
const tenCodes = "sessions: { codes: 10 }\n"

// requireBounded checks that of 200 answers to one page so many were accepted and all others refused: the
// first that come at once are limited as codes, the others as answers.
func requireBounded(t *testing.T, statuses map[int]int, least, most int) {
	t.Helper()
	accepted := statuses[http.StatusSeeOther]
	if accepted < least || accepted > most || accepted+statuses[http.StatusTooManyRequests] != 200 {
		t.Errorf("statuses %v, want %d to %d accepted", statuses, least, most)
	}
}

// TestDoubleClickOnConsent: the browser follows the second answer, which has the same code. When that
// has been redeemed, the page says so.
func TestDoubleClickOnConsent(t *testing.T) {
	s := start(t, unlimited)
	b, c, verifier := newBrowser(t), s.config("native"), oauth2.GenerateVerifier()
	page := consentPage(b, c, verifier)
	first, _ := consents(t, b.client.Jar, []string{s.Issuer}, repeated(page, 1))
	b.submit("/consent", "decision", "allow")
	code := b.sentTo().Query().Get("code")
	check.Equal(t, "the code of before", first[code], 1)
	_, err := c.Exchange(with(t), code, oauth2.VerifierOption(verifier))
	check.OK(t, err)

	b.open(c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)))
	again := b.form("/consent")
	again.fields.Set("binding", page.Get("binding"))
	b.submit("/consent", "decision", "allow")
	check.Equal(t, "status", b.page.status, http.StatusBadRequest)
	if !strings.Contains(b.page.text, "was already answered") {
		t.Errorf("the page does not say what happened:\n%s", b.page.text)
	}
}

// TestCodesOfASessionAreLimited opens a page for each code.
func TestCodesOfASessionAreLimited(t *testing.T) {
	s := start(t, unlimited+tenCodes)
	b, c := newBrowser(t), s.config("native")
	var pages []url.Values
	for range 30 {
		pages = append(pages, consentPage(b, c, oauth2.GenerateVerifier()))
	}
	codes, statuses := consents(t, b.client.Jar, []string{s.Issuer}, pages)
	check.Equal(t, "codes", len(codes), 10)
	check.Equal(t, "statuses", statuses, map[int]int{http.StatusSeeOther: 10, http.StatusTooManyRequests: 20})
	s.code(newBrowser(t), c) // another session of the user gets one
}

// TestConsentPageGivesOneCodeOnTwoInstances sends one page to both at once.
func TestConsentPageGivesOneCodeOnTwoInstances(t *testing.T) {
	cluster := newCluster(t, unlimited+tenCodes)
	cluster.register("native", clientArgs["native"]...)
	cluster.addUser()
	cluster.grow(2)
	b, verifier := newBrowser(t), oauth2.GenerateVerifier()
	c := cluster.members[0].config("native")
	page := consentPage(b, c, verifier)
	var servers []string
	for _, m := range cluster.members {
		servers = append(servers, m.Issuer)
	}
	// The cookie is that of the host, whatever the port.
	codes, statuses := consents(t, b.client.Jar, servers, repeated(page, 200))
	check.Equal(t, "codes", len(codes), 1)
	requireBounded(t, statuses, 20, 200)
	for code := range codes {
		_, err := cluster.members[1].config("native").Exchange(with(t), code, oauth2.VerifierOption(verifier))
		check.OK(t, err)
	}
}

// TestConsentOnTwoInstances: what a user allows on one instance needs no page on the other, and ends on
// both when it is withdrawn on one.
func TestConsentOnTwoInstances(t *testing.T) {
	cluster := newCluster(t, unlimited)
	cluster.register("web", clientArgs["web"]...)
	cluster.addUser()
	cluster.grow(2)
	on := func(i int) *oauth2.Config {
		c := cluster.members[i].config("web")
		c.ClientSecret = cluster.secrets["web"]
		return c
	}
	b, verifier := newBrowser(t), oauth2.GenerateVerifier()
	ask := func(i int, parameters ...oauth2.AuthCodeOption) url.Values {
		t.Helper()
		b.open(on(i).AuthCodeURL("s", append(parameters, oauth2.S256ChallengeOption(verifier))...))
		if b.page.left == nil {
			return nil
		}
		return b.page.left.Query()
	}
	none := oauth2.SetAuthURLParam("prompt", "none")

	check.Equal(t, "signed out", ask(0, none).Get("error"), "login_required")
	ask(0)
	b.submit("/sign-in", "username", user, "password", password)
	check.Equal(t, "before the consent", ask(1, none).Get("error"), "consent_required")
	check.Equal(t, "iss", ask(1, none).Get("iss"), "http://127.0.0.1:9096")
	ask(0)
	b.submit("/consent", "decision", "allow")
	code := ask(1, none).Get("code") // on the other instance, and without a page
	token, err := on(0).Exchange(with(t), code, oauth2.VerifierOption(verifier))
	check.OK(t, err)
	ask(0, oauth2.SetAuthURLParam("max_age", "0"))
	if !b.has("/sign-in") {
		t.Errorf("max_age=0 shows no sign-in page:\n%s", b.page.text)
	}

	b.open(cluster.members[1].Issuer + "/consents")
	b.submit("/consents/withdraw")
	if !strings.Contains(b.page.text, "No application has access.") {
		t.Errorf("it was not withdrawn:\n%s", b.page.text)
	}
	token.Expiry = token.Expiry.AddDate(-1, 0, 0)
	if _, err = on(0).TokenSource(with(t), token).Token(); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("a refresh after the withdrawal: %v", err)
	}
	check.Equal(t, "after the withdrawal", ask(0, none).Get("error"), "consent_required")
}
