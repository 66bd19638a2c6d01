package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// How bbolt lays out a page, in bytes and in the byte order of the machine: a header of its number (8), what
// it is (2), how many elements it has (2) and how many pages follow it (4), then the elements, then keys and
// values in the order of the elements.
const (
	pageHeader   = 16
	pageElement  = 16
	bucketHeader = 16 // before a bucket that is on the page of its parent
	branchPage   = 0x01
	leafPage     = 0x02
	freePage     = 0x10
	isBucket     = 0x01   // of the element of a leaf
	manyFree     = 0xFFFF // their count is the first number then
)

// pageUse is what a page was found to be.
type pageUse byte

const (
	unseen pageUse = iota
	used
	free
)

// pageCheck reads the pages of a file without bbolt, which follows damaged ones in a circle or outside of the
// file. It reads each page once at most, so it ends.
type pageCheck struct {
	ctx     context.Context //nolint:containedctx // of the one call of checkPages
	file    io.ReaderAt
	size    int64     // of a page
	uses    []pageUse // by number
	buffers [][]byte  // by depth: of a branch, while its children are read
}

// checkPages returns an error unless every page that a transaction can see is a part of one tree, or free,
// and never both; and unless all keys are in order. Errors: [ErrCorrupt]; those of reading.
func checkPages(ctx context.Context, file io.ReaderAt, tx *bolt.Tx) error {
	size := int64(tx.DB().Info().PageSize)
	c := &pageCheck{ctx: ctx, file: file, size: size, uses: make([]pageUse, tx.Size()/size)}
	copy(c.uses, []pageUse{used, used}) // the headers
	root := tx.Cursor().Bucket().Root()
	list, err := c.freeList(uint64(tx.ID()), uint64(root)) //nolint:gosec // counts transactions
	if err == nil {
		err = c.takeFree(list)
	}
	if err == nil {
		err = c.tree(uint64(root), 0, nil, nil)
	}
	if err != nil {
		return err
	}
	if i := slices.Index(c.uses, unseen); i >= 0 {
		return damaged("page %d is neither used nor free", i)
	}
	return nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// freeList returns the number of the page with the free pages, from the header that bbolt has chosen.
func (c *pageCheck) freeList(transaction, root uint64) (uint64, error) {
	for i := range int64(2) {
		head := make([]byte, pageHeader+64)
		if _, err := c.file.ReadAt(head, i*c.size); err != nil {
			return 0, err
		}
		field := func(at int) uint64 { return binary.NativeEndian.Uint64(head[pageHeader+at:]) }
		if field(48) == transaction && field(16) == root && field(40) == uint64(len(c.uses)) {
			return field(32), nil
		}
	}
	return 0, damaged("its headers contradict each other")
}

// takeFree marks the free pages.
func (c *pageCheck) takeFree(list uint64) error {
	page, err := c.read(list, 0)
	if err != nil {
		return err
	}
	if kind := binary.NativeEndian.Uint16(page[8:]); kind != freePage {
		return damaged("page %d is no list of free pages", list)
	}
	count, ids := uint64(binary.NativeEndian.Uint16(page[10:])), page[pageHeader:]
	if count == manyFree {
		count, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return damaged("the list of free pages is too long for its page %d", list)
	}
	for i := range count {
		if err := c.take(binary.NativeEndian.Uint64(ids[8*i:]), free); err != nil {
			return err
		}
	}
	return nil
}

// take marks a page that was not seen before.
func (c *pageCheck) take(id uint64, use pageUse) error {
	switch {
	case id >= uint64(len(c.uses)):
		return damaged("there is no page %d", id)
	case c.uses[id] != unseen:
		return damaged("page %d is used twice", id)
	}
	c.uses[id] = use
	return c.ctx.Err()
}

// read returns a page and those that follow it. It is valid until another of the same depth is read.
func (c *pageCheck) read(id uint64, depth int) ([]byte, error) {
	if err := c.take(id, used); err != nil {
		return nil, err
	}
	if depth == len(c.buffers) {
		c.buffers = append(c.buffers, make([]byte, c.size))
	}
	page, at := c.buffers[depth][:c.size], int64(id)*c.size //nolint:gosec // within the file
	if _, err := c.file.ReadAt(page, at); err != nil {
		return nil, err
	}
	if own := binary.NativeEndian.Uint64(page); own != id {
		return nil, damaged("page %d has the number %d", id, own)
	}
	more := uint64(binary.NativeEndian.Uint32(page[12:]))
	if more == 0 {
		return page, nil
	}
	for i := range more {
		if err := c.take(id+1+i, used); err != nil {
			return nil, err
		}
	}
	page = make([]byte, int64(1+more)*c.size) //nolint:gosec // within the file
	c.buffers[depth] = page
	_, err := c.file.ReadAt(page, at)
	return page, err
}

// tree checks a page and those below it. Its keys are lowest or more, and less than end; nil: that is not bounded.
func (c *pageCheck) tree(id uint64, depth int, lowest, end []byte) error {
	page, err := c.read(id, depth)
	if err != nil {
		return err
	}
	kind := binary.NativeEndian.Uint16(page[8:])
	list, ok := elements(page, kind == branchPage, lowest, end)
	switch {
	case kind != branchPage && kind != leafPage:
		return damaged("page %d is of the unknown kind %x", id, kind)
	case !ok || kind == branchPage && len(list) == 0:
		return damaged("page %d is not in order", id)
	case kind == leafPage:
		return c.leaves(id, depth, list)
	}
	for i, e := range list {
		next := end
		if i+1 < len(list) {
			next = list[i+1].key
		}
		if err := c.tree(e.child, depth+1, e.key, next); err != nil {
			return err
		}
	}
	return nil
}

// leaves checks the buckets among the elements of a leaf.
func (c *pageCheck) leaves(id uint64, depth int, list []element) error {
	for _, e := range list {
		if e.flags == 0 {
			continue
		}
		if e.flags != isBucket || len(e.value) < bucketHeader {
			return damaged("page %d is not in order", id)
		}
		if root := binary.NativeEndian.Uint64(e.value); root != 0 {
			if err := c.tree(root, depth+1, nil, nil); err != nil {
				return err
			}
			continue
		}
		inline := e.value[bucketHeader:]
		if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[8:]) != leafPage {
			return damaged("page %d has a bucket that is not in order", id)
		}
		within, ok := elements(inline, false, nil, nil)
		for _, e := range within {
			ok = ok && e.flags == 0
		}
		if !ok {
			return damaged("page %d has a bucket that is not in order", id)
		}
	}
	return nil
}

// element is one of a page: of a branch with a child, of a leaf with flags and a value.
type element struct {
	key, value []byte
	child      uint64
	flags      uint32
}

// elements returns those of a page, and whether each is where it belongs, with a key in order.
func elements(page []byte, branch bool, lowest, end []byte) (list []element, ok bool) {
	count := int(binary.NativeEndian.Uint16(page[10:]))
	next := uint64(pageHeader + count*pageElement)
	if next > uint64(len(page)) {
		return nil, false
	}
	list = make([]element, 0, count)
	for i := range count {
		at := pageHeader + i*pageElement
		field := func(n int) uint32 { return binary.NativeEndian.Uint32(page[at+4*n:]) }
		var e element
		var position, keySize, valueSize uint32
		if branch {
			position, keySize, e.child = field(0), field(1), binary.NativeEndian.Uint64(page[at+8:])
		} else {
			e.flags, position, keySize, valueSize = field(0), field(1), field(2), field(3)
		}
		begin, between := next, next+uint64(keySize)
		next = between + uint64(valueSize)
		if uint64(at)+uint64(position) != begin || keySize == 0 || next > uint64(len(page)) {
			return nil, false
		}
		e.key, e.value = page[begin:between], page[between:next]
		order := bytes.Compare(e.key, lowest)
		if order < 0 || order == 0 && i > 0 || end != nil && bytes.Compare(e.key, end) >= 0 {
			return nil, false
		}
		lowest = e.key
		list = append(list, e)
	}
	return list, true
}
