package process

import "testing"

func TestResident(t *testing.T) {
	got := residentOf("Name:\tserver\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\nRssAnon:\t  120 kB\nRssFile:\t   70 kB\nRssShmem:\t 10 kB\n")
	if want := (Resident{Peak: 300 << 10, Now: 200 << 10, File: 80 << 10}); got != want || got.Own() != 120<<10 {
		t.Errorf("resident memory %v, want %v", got, want)
	}
}

func TestBusy(t *testing.T) {
	got, err := busyOf([]string{"100", "10", "200", "9999", "9999", "1", "2", "9999", "50", "5"})
	if err != nil || got != 313*Hundredth {
		t.Errorf("busy for %v, %v", got, err)
	}
	for _, bad := range [][]string{nil, {"1", "2", "3"}, {"1", "2", "x", "4", "5", "6", "7"}} {
		if _, err := busyOf(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
