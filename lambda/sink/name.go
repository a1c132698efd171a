package sink

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// maxName is the shortest limit of the services' names: 64 for a durable execution, 80
// for one of Step Functions.
const maxName = 64

// executionName returns the name of the execution that does a job: the same on every
// delivery, so that the service refuses the second. A job's id has letters, digits and dots; of
// these, a durable execution's name can't have dots. Another id, which only a program's own
// store makes, is named by its hash.
func executionName(jobID string) string {
	odd := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '.' && c != '-'
	}
	if jobID != "" && len(jobID) <= maxName && !strings.ContainsFunc(jobID, odd) {
		return strings.ReplaceAll(jobID, ".", "_")
	}
	sum := sha256.Sum256([]byte(jobID))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
