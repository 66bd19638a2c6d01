package mongo

// Numbers of the checks, as docs/operating-mongodb.md lists them.
const (
	checkUnordered = 1 + iota
	checkOrdered
	checkVersioned
	checkFallback
	checkRemoval
	checkIDOrder
	checkMax
	checkOneUpdate
	checkInc
	checkRange
	checkWhole
	checkFindAndModify
	checkWriteConcern
	checkReadConcern
	checkPrimary
	checkTTL
	checkValidators
	checkChangeStreams
	checkServerTime
	checkRoundTrip
	checkUpsertByID
)

// shortForm are the checks that a server runs when it starts.
var shortForm = []int{
	checkUnordered, checkOrdered, checkVersioned, checkFallback, checkRemoval, checkIDOrder, checkMax, checkOneUpdate,
	checkInc, checkRange, checkWriteConcern, checkReadConcern,
}

// relied has what is relied on, and what follows if a server does not do it. A test compares it
// with docs/operating-mongodb.md.
var relied = []Check{
	{
		Number: checkUnordered, Exact: true, Name: "unordered bulk goes on and names each error",
		Follows: "writes that never ran are taken for written: counts are lost",
	},
	{
		Number: checkOrdered, Exact: true, Name: "ordered bulk stops at its first error",
		Follows: "the server ignores an option that it was sent; others may be ignored too",
	},
	{
		Number: checkVersioned, Exact: true, Name: "versioned upsert of a moved document fails",
		Follows: "instances overwrite each other: counts are lost or counted twice",
	},
	{
		Number: checkFallback, Exact: true, Name: "fallback filter by the writer's sequence",
		Follows: "a write that is sent again after a lost reply is counted twice, or never",
	},
	{
		Number: checkRemoval, Exact: true, Name: "removal of what was seen, and only that",
		Follows: "counts that arrive at the time of a removal are lost",
	},
	{
		Number: checkIDOrder, Exact: true, Name: "field order of an embedded _id",
		Follows: "documents of other programs are taken for counters, or refuse them",
	},
	{
		Number: checkMax, Exact: true, Name: "$max on dates",
		Follows: "counters expire while they are in use: counts are lost",
	},
	{
		Number: checkOneUpdate, Exact: true, Name: "$unset beside $inc, all or nothing",
		Follows: "a write is half applied: counts differ from what was admitted",
	},
	{
		Number: checkInc, Exact: true, Name: "$inc exact to 64 bits",
		Follows: "a count falls or grows by itself",
	},
	{
		Number: checkRange, Exact: true, Name: "range of _ids",
		Follows: "lists of a client's counters, and resets, miss some or reach others",
	},
	{
		Number: checkWhole, Exact: true, Name: "one document under many writers",
		Follows: "counts are lost, and a code or refresh token is claimed twice",
	},
	{
		Number: checkFindAndModify, Exact: true, Name: "findAndModify upserts and returns the old",
		Follows: "instances misjudge which others are alive, and a cloned process is not noticed",
	},
	{
		Number: checkWriteConcern, Exact: true, Name: "write concern majority",
		Follows: "acknowledged counts are lost when the primary fails",
	},
	{
		Number: checkReadConcern, Exact: true, Name: "read concern majority",
		Follows: "an instance takes a write that was applied for one that was not: it is counted twice",
	},
	{
		Number: checkPrimary, Exact: true, Name: "connected to a primary",
		Follows: "reads are behind, and writes are refused",
	},
	{
		Number: checkTTL, Name: "TTL indexes",
		Follows: "counters, codes, tokens and sessions stay for ever: the collections grow until they are deleted by other means",
	},
	{
		Number: checkValidators, Name: "validators",
		Follows: "what other programs write into the database is only checked when it is read",
	},
	{
		Number: checkChangeStreams, Name: "change streams",
		Follows: "changes of policies reach the instances by polling, within about a second",
	},
	{
		Number: checkServerTime, Name: "server time",
		Follows: "one of the two clocks is wrong: instances follow the majority of clocks, and expiry follows the server",
	},
	{
		Number: checkRoundTrip, Name: "round trip",
		Follows: "the round trip is not known",
	},
	{
		Number: checkUpsertByID, Exact: true, Name: "upserts by _id alone",
		Follows: "revocations are lost, so that tokens stay good, and a gateway forgets whose refresh tokens are",
	},
}
