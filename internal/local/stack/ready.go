package stack

import (
	"bytes"
	"encoding/json"
)

// Ready holds the addresses of a running stack.
type Ready struct {
	API     string // base URL of the first HTTP API, or, if there is none, of the first API
	Control string
	// DynamoDB is the database's endpoint, or "" for a template without tables. SQS is
	// the queue server's endpoint, or "" for a template without queues.
	DynamoDB, SQS string
	// Lambda is the endpoint of the Invoke API.
	Lambda string
	// Table is the name of the main table: the first table with TTL and a stream, or
	// else the first with a stream, or else the first.
	Table string
	// Records is true if Table has the key that Samekey's records need: pk, and no sort
	// key.
	Records bool
	// UI is the link to the page that shows the table. The link contains the page's
	// token. UI is "" if there is no page.
	UI string
	// APIs are the base URLs of all APIs, by logical id.
	APIs map[string]string
	// Processes is Options.Processes. String leaves out a process without a URL.
	Processes []Process
}

// String returns the ready line: JSON, without a line feed.
func (r Ready) String() string {
	var out bytes.Buffer
	out.WriteString(`{"ready":true`)
	add := func(key string, value any) {
		// Marshal can't fail: the values are strings and a map of strings
		k, _ := json.Marshal(key)
		v, _ := json.Marshal(value)
		out.WriteByte(',')
		out.Write(k)
		out.WriteByte(':')
		out.Write(v)
	}
	add("api", r.API)
	for _, p := range r.Processes {
		if p.URL != "" {
			add(p.Name, p.URL)
		}
	}
	add("control", r.Control)
	add("dynamodb", r.DynamoDB)
	add("table", r.Table)
	add("lambda", r.Lambda)
	add("sqs", r.SQS)
	if r.UI != "" {
		add("ui", r.UI)
	}
	add("apis", r.APIs)
	out.WriteByte('}')
	return out.String()
}
