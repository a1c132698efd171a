// Package awsname names executions and schedules after the work that they do. The same
// work always gets the same name, so that AWS refuses a second execution of this work.
package awsname

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Of returns a name that every service accepts. The name is id, with "_" instead of
// each dot, since the name of a durable execution can't have dots. If id is empty or
// longer than limit, or contains characters that some service refuses, the name is a
// hash of id and owner. A hash has 32 characters, so limit must be at least 32.
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
