package stack

import (
	"encoding/json"
	"sync"
	"time"
)

// Failed is a failed event for an OnFailure destination.
type Failed struct {
	Function    string          `json:"function"`    // logical id
	Destination string          `json:"destination"` // ARN
	Time        time.Time       `json:"time"`
	Record      json.RawMessage `json:"record"` // the document for the destination
}

// failures keeps the failed events for OnFailure destinations.
type failures struct {
	mu      sync.Mutex
	entries []Failed
}

func (f *failures) add(entry Failed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, entry)
}

func (f *failures) list() []Failed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Failed{}, f.entries...)
}
