package records

import (
	"fmt"
	"strings"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/idem/store"
)

// Fact is a field of the record as people read it.
type Fact struct{ Label, Value string }

// facts are the fields of the record that both `samekey get` and the page show, with
// the same labels and texts. To show a new field, add a line here.
var facts = []struct {
	label string
	of    func(*store.Record) string
}{
	{"Record", func(r *store.Record) string { return r.PK }},
	{"Operation", func(r *store.Record) string { return r.ID }},
	{"Route", func(r *store.Record) string { return r.Route }},
	{"Scope", func(r *store.Record) string { return r.Scope }},
	{"Handler", func(r *store.Record) string { return strings.TrimSuffix(r.Handler.Function+"/"+r.Handler.Name, "/") }},
	{"Tenant", func(r *store.Record) string { return r.Tenant }},
	{"Region", func(r *store.Record) string { return r.Region }},
	{"Look-up", asked},
}

// asked describes the last look-up of a call in doubt.
func asked(r *store.Record) string {
	a := r.Asked
	if a == nil {
		return ""
	}
	says := fmt.Sprintf("at %s, look-up %d of the call of phase %q found: %s", plain.Time(a.At), a.Times, a.Phase, a.Said)
	if !a.Sent.IsZero() {
		says += "; the call can't have been sent after " + plain.Time(a.Sent)
	}
	return says
}

func factsOf(r *store.Record) (all []Fact) {
	for _, f := range facts {
		if value := f.of(r); value != "" {
			all = append(all, Fact{f.label, value})
		}
	}
	return all
}
