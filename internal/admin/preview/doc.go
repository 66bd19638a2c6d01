// Package preview says what a change of limits would have done: which clients it would have denied
// requests in the last ten minutes, and how many. It compares the policies before and after the
// change with what the instances have recorded (package activity). It never changes anything, and
// does no I/O. Where the records cannot tell, it says so and what would help.
//
//	c := preview.Change{Before: p, After: q, Made: changes, Directory: clients, Recent: report, Now: now}
//	c.Effect().Summary // "In the last 10 minutes, this change would have denied requests of 1 of 7 active clients: …"
package preview
