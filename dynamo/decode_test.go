package dynamo_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// Of the items of a table only records are read as records. One that isn't understood is an
// error: a tool must not pass over it.
func TestDecodeTellsRecordsFromOtherItems(t *testing.T) {
	t.Parallel()
	var db fakedynamo.DB
	st, err := dynamo.New(&db, "records")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := idem.New(st, callertest.Anybody).Do(t.Context(), idem.Request{Key: "k", Method: "POST", Path: "/"}, tabletest.Created("made")); err != nil {
		t.Fatal(err)
	}
	record := db.Items("records")[0]
	without := func(names ...string) map[string]types.AttributeValue {
		it := maps.Clone(record)
		for _, name := range names {
			delete(it, name)
		}
		return it
	}
	if r, err := dynamo.Decode(record); err != nil || r == nil || r.State != store.Done || r.PK == "" {
		t.Errorf("the record: %+v, %v", r, err)
	}
	for name, it := range map[string]map[string]types.AttributeValue{
		"nothing": nil, "no key": without("pk"), "no version": without("v"), "no state": without("st"),
		"a key that is no text": {"pk": tabletest.Num(1), "v": record["v"], "st": record["st"]},
	} {
		if r, err := dynamo.Decode(it); r != nil || err != nil {
			t.Errorf("%s: %+v, %v, want no record", name, r, err)
		}
	}
	newer := without()
	newer["v"] = tabletest.Num(99)
	if r, err := dynamo.Decode(newer); r != nil || !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("another layout: %+v, %v", r, err)
	}
}
