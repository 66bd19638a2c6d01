package load

// queue is first in, first out. The zero value is usable.
type queue[T any] struct {
	all  []T
	head int
}

func (q *queue[T]) len() int { return len(q.all) - q.head }

func (q *queue[T]) push(v T) { q.all = append(q.all, v) }

func (q *queue[T]) first() T { return q.all[q.head] }

// pop removes the first element. It compacts the slice when half of it has been popped.
func (q *queue[T]) pop() T {
	v := q.all[q.head]
	var none T
	q.all[q.head] = none
	if q.head++; q.head*2 >= len(q.all) {
		q.all = q.all[:copy(q.all, q.all[q.head:])]
		q.head = 0
	}
	return v
}
