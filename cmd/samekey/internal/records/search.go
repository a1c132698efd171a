package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/redact"
)

// wanted selects the records that [find] looks for. A record must match all fields that are
// set.
type wanted struct {
	ID    string    // id of the operation
	Short string    // short name of the record in logs and metrics
	Since time.Time // the record's last attempt must have begun at this time or later
	// Match reports whether a record is one that the search wants. The result known is
	// false if Match can't tell, because the record lacks what Match compares. If Match
	// is nil, the search ends with the first record with the ID or Short.
	Match func(*store.Record) (is, known bool)
	// Load reads a record again if Match could not compare it. Unlike the scan, Load
	// may open sealed contents.
	Load func(ctx context.Context, pk string) (*store.Record, error)
}

// Found is the result of a search.
type Found struct {
	Records []*store.Record // matching records; in a search by ID or Short only PK is set
	Seen    int             // number of records read; if Match is nil: 1 if a record matches, else 0
	// Sealed, Missing and Unreadable count the records that could not be compared.
	// Sealed counts records whose contents are sealed. Missing counts records that lack
	// what Match compares. Unreadable counts records that this program can't read.
	Sealed, Missing, Unreadable int
	Why                         error // why a sealed record was not opened
}

// Unknown returns the number of records that could not be compared.
func (f *Found) Unknown() int { return f.Sealed + f.Missing + f.Unreadable }

// Untold describes the records that could not be compared; "" if all were compared. The
// parameter missing is the text for the records that f.Missing counts.
func (f *Found) Untold(missing string) string {
	if f.Unknown() == 0 {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		n   int
		why string
	}{{f.Sealed, "sealed: set --keys-from to a program that has the keys"}, {f.Missing, missing}, {f.Unreadable, "not readable by this version"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.why))
		}
	}
	text := fmt.Sprintf("%d of %d records could not be compared (%s)", f.Unknown(), f.Seen, strings.Join(parts, "; "))
	if f.Why != nil {
		text += ": " + f.Why.Error()
	}
	return text
}

var errFound = errors.New("found")

// find searches the whole table. If w.Match is set, find returns all records that match.
// Otherwise it returns the first record with the ID or Short, even if this program can't
// read the record. Reads are eventually consistent. By default find reads 8 segments at
// once, and 8 pages a second.
func find(ctx context.Context, api stream.ScanAPI, opt ScanOptions, w wanted) (*Found, error) {
	opt.wanted = &w
	opt.Segments, opt.PagesPerSecond = cmp.Or(opt.Segments, 8), cmp.Or(opt.PagesPerSecond, 8)
	f, closed := &Found{}, []string(nil)
	_, err := Scan(ctx, api, opt, func(it Item) error {
		switch {
		case w.Short != "" && redact.Record(it.PK) != w.Short: // the filter also accepts a namespace that begins with the short name
			return nil
		case w.Match == nil:
			f.Records, f.Seen = []*store.Record{{PK: it.PK}}, 1
			return errFound
		case it.Err != nil:
			f.Seen++
			f.Unreadable++
			return nil //nolint:nilerr // the error is counted and reported
		case it.Record == nil:
			return nil
		}
		f.Seen++
		switch is, known := w.Match(it.Record); {
		case is:
			f.Records = append(f.Records, it.Record)
		case !known:
			closed = append(closed, it.PK)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return f, f.open(ctx, w, closed)
}

// The list closed has the partition keys of the records that Match could not compare.
// Found.open loads each of these records, with sealed contents if possible, and
// compares the record again.
func (f *Found) open(ctx context.Context, w wanted, closed []string) error {
	for _, pk := range closed {
		if w.Load == nil {
			f.Missing++
			continue
		}
		rec, err := w.Load(ctx, pk)
		switch {
		case errors.Is(err, store.ErrSealed):
			f.Sealed, f.Why = f.Sealed+1, err
			continue
		case errors.Is(err, store.ErrCorrupt):
			f.Unreadable++
			continue
		case err != nil:
			return err
		case rec == nil: // the record was deleted meanwhile
			f.Seen--
			continue
		}
		switch is, known := w.Match(rec); {
		case is:
			f.Records = append(f.Records, rec)
		case !known:
			f.Missing++
		}
	}
	return nil
}

// wanted.filter makes a scan leave out items that can't match. The scan also leaves out
// companions, because they have no attribute st.
func (w *wanted) filter(in *dynamodb.ScanInput) {
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
		filter += " AND (run_ms >= :since OR (attribute_not_exists(run_ms) AND created_ms >= :since))" // without run_ms, the last attempt began at created_ms
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
