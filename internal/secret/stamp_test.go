package secret

import "testing"

// TestStamps checks which carried stamps a record accepts.
func TestStamps(t *testing.T) {
	first, other := NewStamp(), NewStamp()
	second := first.Revoked()
	if second.ID != first.ID || len(first.ID) != 22 || first.Count != 1 || second.Count != 2 || first.ID == other.ID {
		t.Fatalf("%+v, then %+v, and %+v", first, second, other)
	}
	for _, tt := range []struct {
		name             string
		carried, record  Stamp
		accepted, behind bool
	}{
		{"the same", first, first, true, false},
		{"revoked since", first, second, false, false},
		{"revoked before, not known yet", second, first, true, true},
		{"of another", other, first, false, false},
		{"of another, revoked", other.Revoked(), first, false, false},
		{"none", Stamp{}, first, false, false},
	} {
		if accepted, behind := tt.record.Accepts(tt.carried), tt.record.Behind(tt.carried); accepted != tt.accepted || behind != tt.behind {
			t.Errorf("%s: accepted %v, behind %v", tt.name, accepted, behind)
		}
	}
}
