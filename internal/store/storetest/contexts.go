package storetest

import (
	"context"
	"testing"

	"oauth-server/internal/grants"
	"oauth-server/internal/syncer"
)

// testContexts calls everything with a context that is cancelled already. Every call must return the
// context's error, and must have no effect.
func testContexts(t *testing.T, target Target) {
	t.Helper()
	b, before := target.fresh(t), t.Context()
	succeed(t, "user", b.CreateUser(before, user("there")))
	succeed(t, "code", b.CreateCode(before, code("a code")))
	succeed(t, "family", b.CreateFamily(before, family("a family")))
	succeed(t, "session", b.CreateSession(before, session("a session"), mostSessions))
	succeed(t, "agreement", b.PutAgreement(before, agreement("there", "there")))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range cancelled(ctx, b) {
		failWith(t, name, context.Canceled, err)
	}
	checkUntouched(t, b)
}

func cancelled(ctx context.Context, b Backend) map[string]error {
	theCode, theFamily, theSession := code("a code").Digest, family("a family"), session("a session").Digest
	first := family("a code")
	errs := map[string]error{
		"CreateCode":    b.CreateCode(ctx, code("new")),
		"RedeemCode":    b.RedeemCode(ctx, theCode, &first),
		"CreateFamily":  b.CreateFamily(ctx, family("new")),
		"RotateFamily":  b.RotateFamily(ctx, later(theFamily, 2)),
		"Revoke":        b.Revoke(ctx, "new", Epoch),
		"RecordOnce":    b.RecordOnce(ctx, "new", Epoch),
		"CreateUser":    b.CreateUser(ctx, user("new")),
		"ChangeUser":    b.ChangeUser(ctx, "there", grants.UserChange{PasswordHash: "new"}),
		"DeleteUser":    b.DeleteUser(ctx, "there"),
		"CreateSession": b.CreateSession(ctx, session("new"), mostSessions),
		"DeleteSession": b.DeleteSession(ctx, theSession),
		"PutAgreement":  b.PutAgreement(ctx, agreement("new", "new")),
	}
	_, errs["Code"] = b.Code(ctx, theCode)
	_, errs["Family"] = b.Family(ctx, theFamily.Digest)
	_, errs["Agreement"] = b.Agreement(ctx, "there", "there")
	_, errs["AgreementsOf"] = b.AgreementsOf(ctx, "there")
	there := agreement("there", "there")
	errs["DeleteAgreement"] = b.DeleteAgreement(ctx, &there)
	_, errs["Revoked"] = b.Revoked(ctx, "new")
	_, errs["User"] = b.User(ctx, "there")
	_, errs["Users"] = b.Users(ctx)
	_, errs["Session"] = b.Session(ctx, theSession)
	_, errs["Exchange to write"] = b.Exchange(ctx, []syncer.Item{{ID: counterID("new"), Write: adding("me", 1)}})
	_, errs["Exchange to read"] = b.Exchange(ctx, []syncer.Item{{ID: counterID("new"), Read: true}})
	_, errs["Exchange of nothing"] = b.Exchange(ctx, nil)
	_, errs["Now"] = b.Now(ctx)
	_, errs["Sweep"] = b.Sweep(ctx, Epoch.AddDate(1, 0, 0))
	return errs
}

func checkUntouched(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	users, err := b.Users(ctx)
	succeed(t, "users", err)
	equal(t, "users", []any{grants.StoredUser{User: user("there")}}, []any{users[0]})
	c, err := b.Code(ctx, code("a code").Digest)
	succeed(t, "code", err)
	equal(t, "code", code("a code"), c)
	readFamily(t, b, family("a family"))
	_, err = b.Session(ctx, session("a session").Digest)
	succeed(t, "session", err)
	if revoked(t, b, "new") {
		t.Error("a cancelled revocation was recorded")
	}
	notFindable(t, b, "new")
	if r := load(t, b, counterID("new")); r != nil {
		t.Errorf("a cancelled write has made %+v", r)
	}
	equal(t, "agreements", []grants.Agreement{agreement("there", "there")}, agreementsOf(t, b, "there"))
	equal(t, "new agreements", []grants.Agreement(nil), agreementsOf(t, b, "new"))
}
