package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// CompareIDs compares IDs in the order of the items of an exchange: by client, username and limit,
// byte by byte. MongoDB orders the _ids of the documents in the same way.
func CompareIDs(a, b CounterID) int {
	return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.Username, b.Username), cmp.Compare(a.Limit, b.Limit))
}

// CheckItems returns an error if there are more than [MaxBatch] items or if they are not in
// strictly ascending order. Implementations of [Store] return it from Exchange, without results and
// before they do anything.
func CheckItems(items []Item) error {
	if len(items) > MaxBatch {
		return fmt.Errorf("%d items in one exchange, more than %d", len(items), MaxBatch)
	}
	for i := 1; i < len(items); i++ {
		if CompareIDs(items[i-1].ID, items[i].ID) >= 0 {
			return fmt.Errorf("items %d and %d of the exchange are not in ascending order", i-1, i)
		}
	}
	return nil
}

// Check returns an error if the write breaks a rule of [Write]. Stores could disagree on the
// meaning of such a write, or treat a part of it as the path of a field. Implementations of [Store]
// report [Rejected] for it.
func (w *Write) Check() error {
	switch {
	case w.NewEtag == 0:
		return errors.New("the new etag is 0")
	case w.Seq <= 0:
		return fmt.Errorf("the sequence is %d", w.Seq)
	case w.Frame <= 0:
		return fmt.Errorf("the length of the frames is %d ms", w.Frame)
	case w.Pruned < 0:
		return fmt.Errorf("the pruned sequence is %d", w.Pruned)
	case w.Rewrite && !w.Versioned:
		return errors.New("a rewrite is not versioned")
	case w.Rewrite && len(w.Remove.Frames) > 0:
		return errors.New("a rewrite removes frames")
	}
	return errors.Join(w.checkFrames(), w.checkWriters())
}

// checkFrames returns an error if a frame occurs twice in Delta and Remove together, or has a
// negative name.
func (w *Write) checkFrames() error {
	names := make([]int64, 0, len(w.Delta)+len(w.Remove.Frames))
	for _, f := range w.Delta {
		names = append(names, f.Name)
	}
	for _, f := range w.Remove.Frames {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	for i, name := range names {
		if name < 0 {
			return fmt.Errorf("a frame is named %d", name)
		}
		if i > 0 && names[i-1] == name {
			return fmt.Errorf("frame %d is named twice", name)
		}
	}
	return nil
}

// checkWriters returns an error if a writer occurs twice in Remove, if the writer itself is in it,
// or if a name cannot be part of a field's path.
func (w *Write) checkWriters() error {
	names := append(make([]string, 0, 1+len(w.Remove.Writers)), w.Writer)
	for _, x := range w.Remove.Writers {
		names = append(names, x.Writer)
	}
	slices.Sort(names)
	for i, name := range names {
		if !ValidWriter(name) {
			return fmt.Errorf("%.40q is not a writer name", name)
		}
		if i > 0 && names[i-1] == name {
			return fmt.Errorf("writer %.40s is named twice", name)
		}
	}
	return nil
}

// ValidWriter reports whether the name has only a-z and 0-9, and is not empty.
func ValidWriter(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
