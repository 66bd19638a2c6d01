package sharing

// What tests count up to.
const (
	MaxReads     = maxReads
	MaxFruitless = maxFruitless
	MaxSources   = maxSources
	FailurePause = failurePause
	MaxAttempts  = maxAttempts
)
