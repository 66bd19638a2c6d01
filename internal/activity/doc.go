// Package activity counts the decisions of the limiter in the last ten minutes, per
// client and in bounded memory. It answers the question that an operator has before
// enforcement is widened: which clients would it have hit?
//
// A [Recorder] counts the decisions of one process. Its [Report] can be sent to others,
// and [Merge] adds up the reports of all processes.
//
//	r := activity.New(activity.DefaultMaxClients, time.Now())
//	…
//	r.Record(now, activity.Observation{ClientID: "shop", Decision: &d})
//	…
//	report := r.Report(now, activity.MaxReported)
//	// shop: 4711 allowed, 12 would have been denied; at most 34 in one minute
//
// A count depends on the limits that were in force. So there is also a [KindReport]: how
// many requests these limits denied, or would have denied, since they are in force, and
// the most that was inside each window at once. As long as nothing was denied, a lower
// limit of the same shape would have denied a request exactly if that [Peak] is above it.
//
// Of the users with denials it follows those with most, in bounded memory: some of each client, and
// some of all; see [UserReport].
//
// The package never decides anything, does no I/O, and reads no clock.
package activity
