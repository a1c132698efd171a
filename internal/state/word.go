package state

import (
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// Word names the state of a record at now for people, as the drawing of the states
// does: held, abandoned, released, stuck, kept, replayable. No record, an
// expired one and a freed key are "free".
func Word(r *store.Record, now time.Time) string {
	switch {
	case r == nil || r.State == store.None || Free(r, now):
		return "free"
	case r.State == store.Stuck:
		return "stuck"
	case r.State == store.Done && r.Keep == store.KeepJobs:
		return "kept"
	case r.State == store.Done:
		return "replayable"
	case r.Lease.After(now):
		return "held"
	case r.Lease.IsZero():
		return "released"
	}
	return "abandoned"
}

// Namespace returns the namespace in the PK of a record; "" if the PK isn't one of
// Samekey's.
func Namespace(pk string) string {
	_, rest, _ := strings.Cut(pk, "#")
	namespace, _, _ := strings.Cut(rest, "#")
	if !IsNamespace(namespace) { // a key that somebody wrote by hand
		return ""
	}
	return namespace
}

// IsNamespace reports whether an engine can have the namespace s; "" is one.
func IsNamespace(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return len(s) <= 64 && strings.Trim(s, letters) == ""
}
