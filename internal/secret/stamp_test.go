package secret

import "testing"

// TestStamps: which carried stamps the records accept. Some only if what carries them is not too old.
func TestStamps(t *testing.T) {
	first, other, old := NewStamp(), NewStamp(), Stamp{}
	second := first.Revoked()
	if second.ID != first.ID || len(first.ID) != 22 || first.Count != 1 || second.Count != 2 || first.ID == other.ID {
		t.Fatalf("%+v, then %+v, and %+v", first, second, other)
	}
	const never, inTime, always = "never", "in time", "always"
	for _, tt := range []struct {
		name            string
		carried, record Stamp
		want            string
		behind          bool
	}{
		{"the same", first.Carried(), first, always, false},
		{"revoked since", first.Carried(), second, never, false},
		{"revoked before, not known yet", second.Carried(), first, always, true},
		{"of another", other.Carried(), first, never, false},
		{"of another, revoked", other.Revoked().Carried(), first, never, false},
		{"of a record without an ID", old.Carried(), old, inTime, false},
		{"of a record that has an ID since", old.Carried(), Stamp{ID: "x"}, inTime, false},
		{"of a record that was revoked since", old.Carried(), old.Revoked(), never, false},
		{"of a record that another followed", old.Carried(), first, never, false},
		{"of a record that has lost it, or has it not yet here", second.Carried(), old, never, true},
		{"none, and none in the record", Stamp{}, old, inTime, false},
		{"none", Stamp{}, second, inTime, false},
	} {
		got := never
		switch {
		case tt.record.Accepts(tt.carried, false):
			got = always
		case tt.record.Accepts(tt.carried, true):
			got = inTime
		}
		if behind := tt.record.Behind(tt.carried); got != tt.want || behind != tt.behind {
			t.Errorf("%s: accepted %s, behind %v", tt.name, got, behind)
		}
	}
}
