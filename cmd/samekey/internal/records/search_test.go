package records

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// found returns the key that a search finds in a table with one item, a record of another layout.
func found(t *testing.T, item map[string]types.AttributeValue, w wanted) string {
	t.Helper()
	db, table := &fakedynamo.DB{}, "t"
	whole := map[string]types.AttributeValue{"v": &types.AttributeValueMemberN{Value: "9"}, "st": text("open")}
	maps.Copy(whole, item)
	if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: whole}); err != nil {
		t.Fatal(err)
	}
	f, err := find(t.Context(), db, ScanOptions{Table: table, Segments: 1, PagesPerSecond: 1e6}, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Records) == 0 {
		return ""
	}
	return f.Records[0].PK
}

// A search by time finds a record by the start of its last attempt, or
// by its claim if it had one attempt.
func TestFindSince(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Millisecond)
	for name, tt := range map[string]struct {
		created, run time.Duration // ago; 0: absent
		want         string
	}{
		"claimed early":                   {3 * time.Hour, 0, ""},
		"claimed late":                    {time.Hour, 0, "a"},
		"claimed early, taken over early": {3 * time.Hour, 150 * time.Minute, ""},
		"claimed early, taken over late":  {3 * time.Hour, time.Hour, "a"},
		"just then":                       {2 * time.Hour, 0, "a"},
	} {
		item := map[string]types.AttributeValue{"pk": text("a")}
		for attr, ago := range map[string]time.Duration{"created_ms": tt.created, "run_ms": tt.run} {
			if ago > 0 {
				item[attr] = &types.AttributeValueMemberN{Value: strconv.FormatInt(now.Add(-ago).UnixMilli(), 10)}
			}
		}
		if got := found(t, item, wanted{Since: now.Add(-2 * time.Hour)}); got != tt.want {
			t.Errorf("%s: found %q, want %q", name, got, tt.want)
		}
	}
}

// A search finds an unreadable item by the operation's id and by the short
// name, but not by its contents. A namespace may begin like a short name.
func TestFindWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	const pk = "v1#rides#abcdefgh12345678901234567890123456789012345"
	item := map[string]types.AttributeValue{"pk": text(pk), "id": text("OP1")}
	for name, tt := range map[string]struct {
		w    wanted
		want string
	}{
		"its id":                  {wanted{ID: "OP1"}, pk},
		"another id":              {wanted{ID: "OP2"}, ""},
		"its short name":          {wanted{Short: "abcdefgh"}, pk},
		"another short name":      {wanted{Short: "12345678"}, ""},
		"a namespace":             {wanted{Short: "rides"}, ""},
		"anything of its content": {wanted{Match: func(*store.Record) (is, known bool) { return true, true }}, ""},
	} {
		if got := found(t, item, tt.w); got != tt.want {
			t.Errorf("%s: found %q, want %q", name, got, tt.want)
		}
	}
}
