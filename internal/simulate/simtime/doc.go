// Package simtime runs goroutines in simulated time.
//
// A [Loop] is a [background.Scheduler]. One goroutine runs at a time, until it waits, and then the next
// one that can. When all of them wait, time is set to the earliest moment that one waits for. So an hour
// passes as quickly as what is done in it, and is the same in every run.
//
//	loop := simtime.New(begin)
//	defer loop.Close()
//	loop.NewTasks().Go(func() { … waits in Tasks and Signals of the loop … })
//	loop.RunUntil(begin.Add(time.Hour))
//
// It is not [testing/synctest]: nothing that runs on a Loop may wait for anything but the Tasks and
// Signals of this Loop. What the code asks of its Scheduler is all that is simulated, so it runs outside
// tests too, in a fraction of the time.
package simtime
