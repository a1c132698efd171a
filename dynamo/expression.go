package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/internal/item"
)

// update builds an update expression from the differences of two records.
type update struct {
	item.Values
	set    []assignment
	remove []string
	names  map[string]string
	args   item.Map

	condition string // holderCondition, and more where a write depends on jobs

	in       dynamodb.UpdateItemInput // in the same block
	expr     string                   // the expression
	assigned [5]assignment            // the place of set
	removed  [5]string                // the place of remove
}

// assignment sets the attribute at path to the value of an expression.
type assignment struct{ path, value string }

func (u *update) put(path, placeholder string, v item.Value) {
	u.set = append(u.set, assignment{path, placeholder})
	u.args[placeholder] = v
}

func (u *update) expression() *string {
	begin, verb := u.Text.Len(), "SET "
	for _, a := range u.set {
		u.Text.WriteString(verb)
		u.Text.WriteString(a.path)
		u.Text.WriteString(" = ")
		u.Text.WriteString(a.value)
		verb = ", "
	}
	verb = " REMOVE "
	for _, name := range u.remove {
		u.Text.WriteString(verb)
		u.Text.WriteString(name)
		verb = ", "
	}
	u.expr = u.Text.String()[begin:]
	return &u.expr
}
