package main

import (
	"strings"
	"testing"
)

// An assumption about DynamoDB whose calls are refused is not shown, in the service's words; a difference that is seen is one.
func TestRefusedAssumptions(t *testing.T) {
	t.Parallel()
	n := 0
	for _, c := range Claims() {
		if c.Examine == nil || !strings.HasPrefix(c.Name, "dynamodb.") || strings.Contains(c.Name, "stream") {
			continue
		}
		m := newInMemory()
		m.refuse = func(int) error { return refusal("AccessDenied", "no") }
		p := m.place()
		p.meter.begin(c.Cost)
		figure, err := c.Examine(t.Context(), p)
		if n++; c.judge(p, figure, err).Status != NotShown {
			t.Errorf("%s: %v", c.Name, err)
		}
		if c.Name != "dynamodb.refused-put-has-item" {
			continue
		}
		m.refuse = nil // a table that takes all is another one
		if _, differs := c.Examine(t.Context(), p); err.Error() != "AccessDenied: no" || differs == nil || dark(differs) {
			t.Errorf("%s: %v, %v", c.Name, err, differs)
		}
	}
	if n < 15 {
		t.Errorf("%d assumptions", n)
	}
}
