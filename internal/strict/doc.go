// Package strict reads JSON and YAML into structs. It reports all problems at once, as
// [fielderr.Errors]: an unknown field, a repeated one, a wrong type. Each has the path of the field
// and, in YAML, its line. No value is converted silently: 1.5 is not a whole number and 60 is not a
// duration. If the input is not JSON or YAML at all, or is JSON with a repeated name in an object,
// only that is reported. Errors beyond [fielderr.Most] are cut.
//
// Both formats become a [Value] first. [Value.Decode] writes it into a struct by the json tags of
// its fields, including fields of embedded structs. It continues after an error. Types with an
// UnmarshalText method are text. time.Duration, and an integer with a method Std that returns one,
// are text with a unit. A type with a SetDefaults method has defaults for absent fields. A Complete
// method sets fields that depend on the given ones.
//
// A general decoder stops at the first error of a value, reports lines or paths but not
// both, or converts types.
//
//	v, err := strict.ParseJSON(body)
//	…
//	var policy ratelimit.Policy
//	errs := v.Decode(&policy, nil) // user[0].requests: must be a whole number, not "ten"
package strict
