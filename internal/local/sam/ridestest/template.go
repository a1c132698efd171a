// Package ridestest reads the template of Rocket Rides for tests.
package ridestest

import (
	"testing"

	"github.com/samekey/samekey/internal/local/sam"
)

// world sets the only parameter of the template that has no default.
func world(o *sam.Options) { o.Parameters = map[string]string{"WorldUrl": "https://world"} }

// Functions returns the functions of the template in a file, with placeholders for values
// that only a deployment knows.
func Functions(t *testing.T, file string) []sam.Function {
	t.Helper()
	parsed, err := sam.Load(file, world)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Set("Samekey.Table", "StreamArn", "arn:of:the:stream")
	parsed.Set("ReceiptsQueue", "", "https://receipts")
	parsed.Set("Samekey.Tickets", "", "https://tickets")
	functions, err := parsed.Functions()
	if err != nil {
		t.Fatal(err)
	}
	return functions
}

// Filters returns the filters of the worker's stream.
func Filters(t *testing.T, file string) []string {
	t.Helper()
	for _, f := range Functions(t, file) {
		for _, e := range f.Events {
			if e.Stream != nil && len(e.Stream.Filters) > 0 {
				return e.Stream.Filters
			}
		}
	}
	t.Fatal("the stream has no filters")
	return nil
}
