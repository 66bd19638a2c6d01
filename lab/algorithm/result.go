package algorithm

// Result holds the decisions of an algorithm on some traffic.
type Result struct {
	Algorithm string  `json:"algorithm"`
	Seconds   float64 `json:"seconds"` // from the first request to the last
	Keys      int     `json:"keys"`
	Requests  int64   `json:"requests"`
	Admitted  int64   `json:"admitted"` // at once or delayed
	Delayed   int64   `json:"delayed"`
	Denied    int64   `json:"denied"`
	// LongestWait is the longest wait of a delayed request, in seconds.
	LongestWait float64 `json:"longest_wait,omitempty"`

	// FalseAdmits and FalseDenials are by the exact log of the algorithm's own admitted requests (see
	// the package comment). Far of them are wrong by more than [FarPercent] of the limit.
	FalseAdmits  int64 `json:"false_admits"`
	FalseDenials int64 `json:"false_denials"`
	Far          int64 `json:"far_wrong"`
	// WorstWindow is the highest number of requests admitted for one key in any window.
	WorstWindow int64 `json:"worst_window"`

	// Sampled is set if some requests stand for several. All counts except Spike and Series then
	// include the requests they stand for.
	Sampled bool `json:"sampled,omitempty"`
	// Spike has the highest numbers of requests and of issued tokens in any interval of [Options.Per],
	// over all keys.
	Spike Spike `json:"spike"`
	// Counted compares the estimates with the counts, if the algorithm has estimates.
	Counted *Counted `json:"counted,omitempty"`
	// Series has values over time, if [Options.Series] is set.
	Series *Series `json:"series,omitempty"`
}

// FarPercent is the error, in percent of the limit, above which a decision is wrong by far.
// Cloudflare's wrongly admitted sources stayed below it.
const FarPercent = 15

// Spike holds the highest numbers in any interval.
type Spike struct {
	Requests int64 `json:"requests"`
	Tokens   int64 `json:"tokens"`
}

// Counted compares the estimate with the exact count, over all requests.
type Counted struct {
	WronglyAllowed int64   `json:"wrongly_allowed"`
	WronglyLimited int64   `json:"wrongly_limited"`
	WrongKeys      int     `json:"wrong_keys"`      // keys with any wrong decision
	RateError      float64 `json:"rate_error"`      // mean over all requests, as a fraction of the count
	LargestError   float64 `json:"rate_error_max"`  // as a fraction of the count
	MeanCount      float64 `json:"mean_count"`      // of the window, over all requests
	NearLimit      float64 `json:"near_limit"`      // share of requests with a count within FarPercent of the limit
	WrongRatio     float64 `json:"wrong_ratio"`     // of all requests
	OverRatio      float64 `json:"over_limit"`      // share of requests with a count over the limit
	LargestOver    float64 `json:"largest_allowed"` // the highest count that was wrongly allowed, as a fraction of the limit
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

// Series holds values for consecutive intervals.
type Series struct {
	Seconds  float64 `json:"seconds"` // of an interval
	Requests []int64 `json:"requests"`
	Tokens   []int64 `json:"tokens"`
	// Exact and Estimate are for the first key, at the end of each interval, with all requests counted.
	Exact    []int64   `json:"exact,omitempty"`
	Estimate []float64 `json:"estimate,omitempty"`
}
