package dynamo

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo/internal/item"
)

// update builds an update expression from the differences of two records.
type update struct {
	item.Values
	set    strings.Builder
	remove []string
	names  map[string]string
	args   item.Map

	condition string // holderCondition, and more where a write depends on jobs

	in      dynamodb.UpdateItemInput // in the same block
	expr    string                   // the expression
	removed [4]string                // the place of remove
}

func (u *update) put(path, placeholder string, v item.Value) {
	if u.set.Len() == 0 {
		u.set.WriteString("SET ")
	} else {
		u.set.WriteString(", ")
	}
	u.set.WriteString(path)
	u.set.WriteString(" = ")
	u.set.WriteString(placeholder)
	u.args[placeholder] = v
}

func (u *update) text(name, placeholder, prev, next string) {
	switch next {
	case prev:
	case "":
		u.remove = append(u.remove, name)
	default:
		u.put(name, placeholder, u.Str(next))
	}
}

func (u *update) time(name, placeholder string, prev, next time.Time) {
	switch {
	case next.Equal(prev):
	case next.IsZero():
		u.remove = append(u.remove, name)
	default:
		u.put(name, placeholder, u.Secs(next))
	}
}

func (u *update) expression() *string {
	for i, name := range u.remove {
		if i == 0 {
			u.set.WriteString(" REMOVE ")
		} else {
			u.set.WriteString(", ")
		}
		u.set.WriteString(name)
	}
	u.remove = nil
	u.expr = u.set.String()
	return &u.expr
}
