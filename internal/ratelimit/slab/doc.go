// Package slab is the memory of counters: [Records] of many keys in flat slabs without pointers, so
// the garbage collector has nothing to follow. A counter takes 100 bytes, and the names of its key.
//
// A counter is one key under one limit. It has a number, starting at 1, and two records: [Hot] has
// the data for decisions, on one cache line, and [Cold] the data that only exchanges need. Few
// counters have [Extras]. Slots that do not fit into the hot record are in blocks of their own.
//
//	num := records.Find(hash)             // first counter of the key; 0: not in memory
//	slots := records.SlotsOf(num)         // its counts by frame, the newest first
//	next := records.HotOf(num).Next       // the counter of the key's next limit
//
// The package never locks and never decides. Package counting does both.
package slab
