// Package keys keeps the signing keys: made at first start, rotated, published.
package keys
