// Package store has the commands on stores: migrations, backups, unreadable records and signing keys.
package store
