package algorithm

// Result holds the decisions of an algorithm on some traffic.
type Result struct {
	Algorithm string
	Seconds   float64 // from the first request to the last
	Requests  int64
	Admitted  int64 // at once or delayed
	Denied    int64
	// LongestWait is the longest wait of a delayed request, in seconds.
	LongestWait float64

	// FalseAdmits and FalseDenials are by the exact log of the algorithm's own admitted requests (see
	// the package comment). Far of them are wrong by more than [FarPercent] of the limit.
	FalseAdmits, FalseDenials, Far int64
	// WorstWindow is the highest number of requests admitted for one key in any window.
	WorstWindow int64

	// Sampled is set if some requests stand for several. All counts except Spike and Series then
	// include the requests they stand for.
	Sampled bool
	// Spike has the highest numbers of requests and of issued tokens in any interval of [Options.Per],
	// over all keys.
	Spike Spike
	// Counted compares the estimates with the counts, if the algorithm has estimates.
	Counted *Counted
	// Series has values over time, if [Options.Series] is set.
	Series *Series
}

// FarPercent is the error, in percent of the limit, above which a decision is wrong by far.
// Cloudflare's wrongly admitted sources stayed below it.
const FarPercent = 15

// Spike holds the highest numbers in any interval.
type Spike struct{ Requests, Tokens int64 }

// Counted compares the estimate with the exact count, over all requests.
type Counted struct {
	WronglyAllowed, WronglyLimited int64

	WrongKeys    int     // keys with any wrong decision
	RateError    float64 // mean over all requests, as a fraction of the count
	LargestError float64 // as a fraction of the count
	WrongRatio   float64 // of all requests
}

// WrongRatio is the share of decisions that are wrong.
func (r *Result) WrongRatio() float64 { return ratio(r.FalseAdmits+r.FalseDenials, r.Requests) }

// FarRatio is the share of decisions that are wrong by far.
func (r *Result) FarRatio() float64 { return ratio(r.Far, r.Requests) }

// PerSecond returns n divided by the seconds of the traffic, or 0 if it took no time.
func (r *Result) PerSecond(n int64) float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(n) / r.Seconds
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Series holds values for consecutive intervals of [Options.Per].
type Series struct {
	Seconds          float64 // of an interval
	Requests, Tokens []int64
	// Exact and Estimate are for the first key, at the end of each interval, with all requests counted.
	Exact    []int64
	Estimate []float64
}
