// Package simtime runs goroutines in simulated time.
//
// A [Loop] is a [background.Scheduler]. One goroutine runs at a time, until it waits. Then the next
// one that is ready runs. When all of them wait, the time jumps to the earliest moment that any of
// them waits for. So an hour takes only as long as the work done in it, and is the same in every
// run.
//
//	loop := simtime.New(begin)
//	defer loop.Close()
//	loop.NewTasks().Go(func() { … waits in Tasks and Signals of the loop … })
//	loop.RunUntil(begin.Add(time.Hour))
//
// It differs from [testing/synctest]: code on a Loop may wait only for the Tasks and Signals of
// this Loop. Only the calls of the Scheduler are simulated, so it also runs outside tests, in a
// fraction of the time.
package simtime
