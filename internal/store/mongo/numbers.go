package mongo

import (
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The trail has whole numbers as _ids. What else is in it was put there by hand, and is passed
// over: MongoDB compares numbers with numbers only, so a range of numbers has no value of another type.

// maxNumber is above every number that was counted.
const maxNumber = 1 << 62

// numbered is the filter for _ids that are numbers in a range.
func numbered(from, to int64) bson.D {
	return byID(bson.D{{Key: "$gte", Value: from}, {Key: "$lte", Value: to}})
}

// wholeNumber returns the number of an _id. It is rounded down, and false, if it is not a whole one.
func wholeNumber(v bson.RawValue) (int64, bool) {
	var f float64
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		return v.AsInt64OK()
	case bson.TypeDouble:
		f = v.Double()
	case bson.TypeDecimal128:
		f, _ = strconv.ParseFloat(v.Decimal128().String(), 64) // also of what is out of its range
	default:
		return 0, false
	}
	down := math.Floor(f)
	return int64(down), down == f
}
