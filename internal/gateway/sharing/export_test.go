package sharing

// The bounds that tests reach.
const (
	MaxReads     = maxReads
	MaxFruitless = maxFruitless
	MaxSources   = maxSources
	FailurePause = failurePause
	MaxAttempts  = maxAttempts
)
