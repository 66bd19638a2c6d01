// Package strict reads JSON and YAML into structs and reports everything that is wrong
// at once, as [fielderr.Errors]: an unknown field, one given twice, a wrong type, each
// with the path of the field and, in YAML, its line. Nothing is converted silently:
// 1.5 is no whole number and 60 no duration. What is not JSON or YAML at all, or JSON with
// one name twice in an object, is reported alone, and more than [fielderr.Most] errors are cut.
//
// Both formats become a [Value] first, which [Value.Decode] writes into a struct by the
// json tags of its fields, those of embedded structs included. It continues after an
// error. Types with an UnmarshalText method are text; time.Duration, and an integer with a
// method Std that returns one, is text with a unit; and a type with a SetDefaults method has
// defaults for absent fields. A Complete method sets those that depend on what is given.
//
// A general decoder stops at the first error of a value, reports lines or paths but not
// both, or converts types.
//
//	v, err := strict.ParseJSON(body)
//	…
//	var policy ratelimit.Policy
//	errs := v.Decode(&policy, nil) // user[0].requests: must be a whole number, not "ten"
package strict
