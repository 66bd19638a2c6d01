package ratelimit

import (
	"fmt"
	"time"

	"oauth-server/internal/fielderr"
)

// Bounds of how requests over the limit wait.
const (
	// LongestWait bounds max_wait. It has to stay below the timeouts of the server for clients: net/http
	// ends the context of a request whose connection has reached its read deadline.
	LongestWait = 10 * time.Second
	// MaxWaiting bounds max_waiting. It is how many requests wait at one process at once, of all keys together.
	MaxWaiting     = 1000
	defaultWaiting = 10
)

// MaxWait is how long a request waits for its turn at most. In documents it is a text such as "2s".
type MaxWait time.Duration

// Std converts it to a time.Duration.
func (w MaxWait) Std() time.Duration { return time.Duration(w) }

// String writes it as in documents.
func (w MaxWait) String() string { return FormatWindow(w.Std()) }

// MarshalText writes it as in documents.
func (w MaxWait) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (w *MaxWait) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("must be a duration with its unit, such as 2s, not %.40q", text)
	}
	*w = MaxWait(d)
	return nil
}

// Wait is how requests over the limit wait for their turn. The zero Wait is that none does.
type Wait struct {
	Longest time.Duration // that one waits
	AtOnce  int           // how many of one key
}

// wait returns what the first of the policies says that says anything: max_waiting belongs to the max_wait
// beside it.
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

// Waits reports whether requests of the key wait for their turn over the limit, or would in dry-run. Where the
// client gets its last token again it gets that at once.
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

// within returns the problem of a wait that is longer than the longest window of a list, if that has limits.
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
