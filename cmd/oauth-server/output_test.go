package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"oauth-server/internal/check"
)

// TestTableIsPrintable: what cannot be printed is written out, in cells and in differences. The marks of colours stay.
func TestTableIsPrintable(t *testing.T) {
	var out bytes.Buffer
	c := &cli{out: &out}
	check.OK(t, c.table([]string{"x\t99\n100 y\u202e", "\x1b[31mé"}, []string{alarmMark + "1" + endMark, "b"}))
	check.Equal(t, "table", out.String(), `x\t99\n100 y\u202e  \x1b[31mé`+"\n\x1b[31m1\x1b[0m                   b\n")
	check.Equal(t, "differences", differences(json.RawMessage(`{}`), json.RawMessage(`{"username":"a\u001b[2J"}`)), `username a\x1b[2J`)
}
