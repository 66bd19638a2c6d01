package grants_test

import (
	"testing"
	"testing/synctest"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/secret"
)

// starvedWorld is a world that cannot hash passwords while the server lacks processor time, and
// sheds sign-ins for that reason.
func starvedWorld(t *testing.T, edits ...func(*grants.Options)) (w *world, starved *bool, shed *[]overload.Request, gate *overload.Shedder) {
	t.Helper()
	starved, shed = new(bool), new([]overload.Request)
	gate = overload.New(overload.DefaultSettings(), func(r *overload.Request, o overload.Outcome) {
		check.Equal(t, "outcome", o, overload.Shed)
		*shed = append(*shed, *r)
	})
	passwords := secret.NewPasswords(secret.PasswordOptions{Separate: func(task secret.Task) ([]byte, error) {
		if *starved {
			return nil, secret.ErrStarved
		}
		return task.Do(), nil
	}})
	w = newWorld(t, append(edits, func(o *grants.Options) { o.SignIn.Passwords, o.Shedder = passwords, gate })...)
	return w, starved, shed, gate
}

// TestStarvedAttemptIsShed: attempts of a person and of a client are counted as shed, once each.
func TestStarvedAttemptIsShed(t *testing.T) {
	w, starved, shed, gate := starvedWorld(t)
	*starved = true
	refused := check.As[*grants.Error](t, w.signIn(here, "alice", password))
	check.Equal(t, "code", refused.Code, oautherr.TemporarilyUnavailable)
	check.Equal(t, "to retry", refused.RetryAfter > 0, true)
	_, err := w.token("shop", grants.TokenRequest{GrantType: "password", Username: "alice", Password: password})
	check.Equal(t, "for want of", check.As[*overload.ShedError](t, err).Short, overload.Processor)
	check.Equal(t, "shed", *shed, []overload.Request{{Class: overload.SignIn}, {ClientID: "shop", Class: overload.Password}})
	check.Equal(t, "in flight in the end", gate.Stats().InFlight, 0)
}

// TestLongLineShedsNobody: an attempt refused because too many people sign in is reported as busy,
// not as shed.
func TestLongLineShedsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, shed, _ := starvedWorld(t)
		passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1})
		w.reopen(func(o *grants.Options) { o.SignIn.Passwords = passwords })
		defer testworld.TakeHashingSlot(t, passwords)()
		busy := check.As[*secret.BusyError](t, w.signIn(here, "alice", password))
		check.Equal(t, "starved", busy.Starved, false)
		check.Equal(t, "shed", len(*shed), 0)
	})
}
