// Package activity counts the decisions of the limiter in the last ten minutes, per client and in
// bounded memory. It tells operators which clients enforcement would have affected, before they
// widen it.
//
// A [Recorder] counts the decisions of one process. Its [Report] can be sent to other processes,
// and [Merge] adds up the reports of all of them.
//
//	r := activity.New(activity.DefaultMaxClients, time.Now())
//	…
//	r.Record(now, activity.Observation{ClientID: "shop", Decision: &d})
//	…
//	report := r.Report(now, activity.MaxReported)
//	// shop: 4711 allowed, 12 would have been denied; at most 34 in one minute
//
// A count depends on the limits in force. So there is also a [KindReport]: how many requests the
// present limits denied, or would have denied, since they took effect, and the highest count inside
// each window. As long as no request was denied, a lower limit of the same shape would have denied
// one exactly if that [Peak] is above it.
//
// The package also follows the users with the most denials, in bounded memory: a number per client,
// and a number in total; see [UserReport].
//
// The package makes no decisions, does no I/O, and reads no clock.
package activity
