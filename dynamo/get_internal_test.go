package dynamo

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/samekey/samekey/dynamo/internal/item"
)

type address struct {
	Street string
	City   string `dynamodbav:"city"`
}

type account struct {
	ID      string `dynamodbav:"id"`
	Plain   int
	Short   int `dynamodbav:",omitempty"`
	Skipped int `dynamodbav:"-"`
	hidden  int
	address                      // its fields are attributes of the item
	*Named  `dynamodbav:"named"` // an attribute of its own
	*Middle
	When time.Time
}

type Named struct{ Inner string }

type Middle struct {
	M    int
	Deep `dynamodbav:"deep"`
}

type Deep struct{ D int }

// The fields of a struct are the attributes that the SDK writes for it: of each the check
// compares the absence.
func TestFieldsAreWhatTheSDKWrites(t *testing.T) {
	t.Parallel()
	v := account{ID: "1", Plain: 1, Short: 1, Skipped: 1, hidden: 1, address: address{"a", "b"}, Named: &Named{"c"}, Middle: &Middle{M: 1}, When: time.Unix(0, 0)}
	it, err := attributevalue.MarshalMap(v)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for name := range it {
		want = append(want, name)
	}
	slices.Sort(want)
	p := &v
	for _, typ := range []reflect.Type{reflect.TypeOf(v), reflect.TypeOf(p), reflect.TypeOf(&p)} {
		got := fields(typ)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", typ, got, want)
		}
	}
	for _, none := range []any{nil, map[string]int{}, 1} {
		if got := fields(reflect.TypeOf(none)); got != nil {
			t.Errorf("%T: %q, want none", none, got)
		}
	}
}

// What was read is unchanged exactly if each attribute is as it was, or as absent.
func TestStillAsRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		read  item.Map
		found bool
		now   item.Map
		want  bool
	}{
		"the same":                    {item.Map{"a": str("1"), "b": nil}, true, item.Map{"id": str("1"), "a": str("1")}, true},
		"another value":               {item.Map{"a": str("1")}, true, item.Map{"a": str("2")}, false},
		"gone":                        {item.Map{"a": str("1")}, true, item.Map{"id": str("1")}, false},
		"come":                        {item.Map{"b": nil}, true, item.Map{"b": str("1")}, false},
		"no item, as before":          {item.Map{"id": nil}, false, nil, true},
		"an item that wasn't there":   {item.Map{"id": nil}, false, item.Map{"id": str("1")}, false},
		"an item of absence, gone":    {item.Map{"b": nil}, true, nil, false},
		"nothing compared, and there": {item.Map{}, true, item.Map{"id": str("1")}, true},
	} {
		if got := (&Write{read: tt.read, found: tt.found}).still(tt.now); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// A check compares each attribute. Where an item was found and nothing of it has a value,
// its existence is checked, by a part of its key.
func TestConditionOfACheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		read  item.Map
		found bool
		want  string
	}{
		"values and absences": {item.Map{"b": str("2"), "a": nil, "c": str("3")}, true, `if attribute_not_exists(a) AND b = "2" AND c = "3"`},
		"absences of an item": {item.Map{"b": nil}, true, "if attribute_exists(id) AND attribute_not_exists(b)"},
		"nothing of an item":  {item.Map{}, true, "if attribute_exists(id)"},
		"no item":             {item.Map{"id": nil}, false, "if attribute_not_exists(id)"},
	} {
		w := asRead("t", id("1"), tt.read, tt.found)
		if err := w.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := w.String(); got != `check t {"id":"1"} `+tt.want+" as read" {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		// Two checks share no placeholder: they may join one write.
		other := asRead("t", id("1"), tt.read, tt.found)
		for p := range w.names {
			if _, shared := other.names[p]; shared || !strings.HasPrefix(p, "#r") {
				t.Errorf("%s: both have the placeholder %s", name, p)
			}
		}
	}
}
