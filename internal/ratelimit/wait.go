package ratelimit

import (
	"fmt"
	"time"

	"oauth-server/internal/fielderr"
)

// Bounds for waiting requests over the limit.
const (
	// LongestWait bounds max_wait. It must stay below the timeouts of the server for clients:
	// net/http cancels the context of a request when its connection reaches the read deadline.
	LongestWait = 10 * time.Second
	// MaxWaiting bounds max_waiting. It also bounds how many requests wait in one process at once,
	// over all keys.
	MaxWaiting     = 1000
	defaultWaiting = 10
)

// MaxWait is how long a request over the limit waits at most. In documents it is a string such as
// "2s".
type MaxWait time.Duration

// Std converts it to a time.Duration.
func (w MaxWait) Std() time.Duration { return time.Duration(w) }

// String formats it as in documents.
func (w MaxWait) String() string { return FormatWindow(w.Std()) }

// MarshalText formats it as in documents.
func (w MaxWait) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the output of MarshalText.
func (w *MaxWait) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("must be a duration with its unit, such as 2s, not %.40q", text)
	}
	*w = MaxWait(d)
	return nil
}

// Wait configures how requests over the limit wait. With the zero Wait they do not wait.
type Wait struct {
	Longest time.Duration // longest wait of one request
	AtOnce  int           // how many requests of one key may wait
}

// wait returns the Wait of the first policy with a MaxWait. MaxWaiting is always taken from the
// same policy.
func wait(policies ...*Policy) Wait {
	for _, p := range policies {
		switch {
		case p.MaxWait == nil:
		case p.MaxWaiting == nil:
			return Wait{Longest: p.MaxWait.Std(), AtOnce: defaultWaiting}
		default:
			return Wait{Longest: p.MaxWait.Std(), AtOnce: *p.MaxWaiting}
		}
	}
	return Wait{}
}

// Waits reports whether requests of the key over the limit wait, or would wait in dry-run. They do
// not if the client gets its last token again, because it gets that at once.
func (e *Effective) Waits(k Key) bool {
	return e.Wait.Longest > 0 && !e.Trusted && e.Mode != Off && (k.Username != "" || e.OverLimit != OverLimitReuse)
}

// validateWait returns the problems of max_wait and max_waiting.
func (p *Policy) validateWait() (es fielderr.Errors) {
	waits := p.MaxWait != nil && *p.MaxWait > 0
	if p.MaxWait != nil {
		es = append(es, p.validateMaxWait()...)
	}
	switch {
	case p.MaxWaiting == nil:
	case !waits:
		es.Add("max_waiting", "without a max_wait no request waits")
	case *p.MaxWaiting < 1 || *p.MaxWaiting > MaxWaiting:
		es.Add("max_waiting", "%d is not between 1 and %d", *p.MaxWaiting, MaxWaiting)
	}
	return es
}

func (p *Policy) validateMaxWait() (es fielderr.Errors) {
	w := *p.MaxWait
	if w < 0 || w.Std() > LongestWait {
		es.Add("max_wait", "%v is not between 0s and %v", w.Std(), LongestWait)
	}
	if w.Std()%time.Millisecond != 0 {
		es.Add("max_wait", "%v is not a whole number of milliseconds", w.Std())
	}
	if w <= 0 {
		return es
	}
	es = append(es, w.within("user", p.User)...)
	es = append(es, w.within("client", p.Client)...)
	if p.Trusted {
		es.Add("max_wait", "a trusted client is never over a limit: leave it out, or do not trust the client")
	}
	if p.OverLimit == OverLimitReuse {
		es.Add("max_wait", "with over_limit %q the answer comes at once: leave out one of both", OverLimitReuse)
	}
	return es
}

// within returns a problem if the wait is longer than the longest window of a non-empty list.
func (w MaxWait) within(field string, list []Limit) (es fielderr.Errors) {
	var longest time.Duration
	for i := range list {
		longest = max(longest, list[i].Window)
	}
	if len(list) > 0 && w.Std() > longest {
		es.Add("max_wait", "%v is longer than the longest window of %s, %v", w.Std(), field, longest)
	}
	return es
}
