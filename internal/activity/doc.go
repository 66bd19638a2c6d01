// Package activity remembers what the limiter decided lately: per client, for
// the last ten minutes, in bounded memory. It answers the question that an
// operator has before enforcement is widened: whom would it have hit?
//
// A [Recorder] counts the decisions of one process. Its [Report] can be sent
// to others, and [Merge] adds the reports of all processes up, so the answer
// is about all of them.
//
//	r := activity.New(activity.DefaultMaxClients, time.Now())
//	…
//	r.Record(now, activity.Observation{ClientID: "shop", Decision: &d})
//	…
//	report := r.Report(now, activity.MaxReported)
//	// shop: 4711 allowed, 12 would have been denied; at most 34 in one minute
//
// A figure is only worth something together with the limits that it was
// counted under. So beside the plain counts there is a [KindReport]: how many
// requests the limits in force denied, or would have, since they are in force;
// and the most that was inside each window at once. As long as nothing was
// denied, a lower limit that counts alike would have denied a request exactly
// where that [Peak] is above it.
//
// The package never decides anything, does no I/O, reads no clock, and knows
// no usernames: what it keeps is about clients.
package activity
