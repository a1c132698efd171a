package tablescan

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
)

// Wanted says which record [Find] looks for. Set fields all have to match.
type Wanted struct {
	ID    string                   // id of the operation
	Short string                   // short name of the record in logs and metrics
	Since time.Time                // the record's last attempt began, or its last write was, no earlier
	Match func(*store.Record) bool // a record of the others
}

var errFound = errors.New("found")

// Find returns the partition key of the first record that matches; "" if none does. Records
// that this program can't read match by ID and Short. Reads are eventually consistent. By
// default it reads 8 segments at once, and 8 pages in a second.
func Find(ctx context.Context, api API, opt Options, w Wanted) (pk string, _ error) {
	opt.wanted = &w
	opt.Segments, opt.PagesPerSecond = cmp.Or(opt.Segments, 8), cmp.Or(opt.PagesPerSecond, 8)
	_, err := Each(ctx, api, opt, func(it Item) error {
		if !w.matches(it) {
			return nil
		}
		pk = it.PK
		return errFound
	})
	if pk != "" {
		return pk, nil
	}
	return "", err
}

// filter has the service leave out items that can't match. Companions have no st.
func (w *Wanted) filter(in *dynamodb.ScanInput) {
	filter, args := "attribute_exists(st)", map[string]types.AttributeValue{}
	if w.ID != "" {
		filter += " AND id = :id"
		args[":id"] = &types.AttributeValueMemberS{Value: w.ID}
	}
	if w.Short != "" {
		filter += " AND contains(pk, :short)"
		args[":short"] = &types.AttributeValueMemberS{Value: "#" + w.Short}
	}
	if !w.Since.IsZero() {
		filter += " AND (run_ms >= :since OR (attribute_not_exists(run_ms) AND created_ms >= :since))" // without run_ms the first attempt is the last
		args[":since"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(w.Since.UnixMilli(), 10)}
	}
	in.FilterExpression = &filter
	if len(args) > 0 {
		in.ExpressionAttributeValues = args
	}
	if w.Match == nil {
		in.ProjectionExpression = aws.String("pk")
	}
}

func (w *Wanted) matches(it Item) bool {
	switch {
	case w.Short != "" && redact.Record(it.PK) != w.Short: // a namespace may begin so
		return false
	case w.Match == nil:
		return true
	}
	return it.Record != nil && w.Match(it.Record)
}
