// Package awsname names executions and schedules after their work: the same work has the same
// name each time, so that the service refuses the second.
package awsname

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Of returns id, which is letters, digits, dots and hyphens, in at most limit characters that every
// service takes: a durable execution's name can't have dots. Another id, which only a program's
// own store makes, is named by the hash, of 32 characters, of it and of owner.
func Of(id, owner string, limit int) string {
	odd := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '.' && c != '-'
	}
	if id != "" && len(id) <= limit && !strings.ContainsFunc(id, odd) {
		return strings.ReplaceAll(id, ".", "_")
	}
	sum := sha256.Sum256([]byte(owner + "\x00" + id))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}
