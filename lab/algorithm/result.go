package algorithm

// Result is what an algorithm did with traffic.
type Result struct {
	Algorithm string  `json:"algorithm"`
	Seconds   float64 `json:"seconds"` // from the first request to the last
	Keys      int     `json:"keys"`
	Requests  int64   `json:"requests"`
	Admitted  int64   `json:"admitted"` // at once or delayed
	Delayed   int64   `json:"delayed"`
	Denied    int64   `json:"denied"`
	// LongestWait is that of a delayed request, in seconds.
	LongestWait float64 `json:"longest_wait,omitempty"`

	// By the exact log of what the algorithm has itself admitted: see the package. Far of them are wrong by more
	// than [FarPercent] of the limit.
	FalseAdmits  int64 `json:"false_admits"`
	FalseDenials int64 `json:"false_denials"`
	Far          int64 `json:"far_wrong"`
	// WorstWindow is the most that was admitted of one key in any window.
	WorstWindow int64 `json:"worst_window"`

	// Sampled is set if some requests stand for several: all counts are of what they stand for, but Spike and Series.
	Sampled bool `json:"sampled,omitempty"`
	// Spike is the most in any interval of [Options.Per], of all keys: of requests, and of tokens issued.
	Spike Spike `json:"spike"`
	// Counted compares the estimates, where the algorithm has any.
	Counted *Counted `json:"counted,omitempty"`
	// Series is over time, if it was asked for.
	Series *Series `json:"series,omitempty"`
}

// FarPercent is from how many percent of the limit on a decision is wrong by far. It is the error below which
// Cloudflare's wrongly admitted sources stayed.
const FarPercent = 15

// Spike is the most in any interval.
type Spike struct {
	Requests int64 `json:"requests"`
	Tokens   int64 `json:"tokens"`
}

// Counted compares the estimate with the count, of all requests.
type Counted struct {
	WronglyAllowed int64   `json:"wrongly_allowed"`
	WronglyLimited int64   `json:"wrongly_limited"`
	WrongKeys      int     `json:"wrong_keys"`      // keys with any wrong decision
	RateError      float64 `json:"rate_error"`      // mean over all requests, in parts of the count
	LargestError   float64 `json:"rate_error_max"`  // in parts of the count
	MeanCount      float64 `json:"mean_count"`      // of the window, over all requests
	NearLimit      float64 `json:"near_limit"`      // share of requests whose count is within FarPercent of the limit
	WrongRatio     float64 `json:"wrong_ratio"`     // of all requests
	OverRatio      float64 `json:"over_limit"`      // share of requests whose count is over the limit
	LargestOver    float64 `json:"largest_allowed"` // the highest count that was wrongly allowed, in parts of the limit
}

// WrongRatio is the share of decisions that are wrong.
func (r *Result) WrongRatio() float64 { return ratio(r.FalseAdmits+r.FalseDenials, r.Requests) }

// FarRatio is the share of decisions that are wrong by far.
func (r *Result) FarRatio() float64 { return ratio(r.Far, r.Requests) }

// PerSecond returns how many of n there are in a second.
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

// Series are values of intervals that follow one another.
type Series struct {
	Seconds  float64 `json:"seconds"` // of an interval
	Requests []int64 `json:"requests"`
	Tokens   []int64 `json:"tokens"`
	// Exact and Estimate are of the first key, at the end of each interval, with all requests counted.
	Exact    []int64   `json:"exact,omitempty"`
	Estimate []float64 `json:"estimate,omitempty"`
}
