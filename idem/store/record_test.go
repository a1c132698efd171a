package store_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// spoil changes all that a value shares with its copies.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			spoil(field)
		}
	case reflect.Pointer:
		spoil(v.Elem())
		v.Elem().SetZero()
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i))
			v.Index(i).SetZero()
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			spoil(v.MapIndex(key))
			v.SetMapIndex(key, reflect.Value{})
		}
	default:
	}
}

func full() *store.Record {
	var r store.Record
	n := 0
	storetest.Fill(reflect.ValueOf(&r).Elem(), &n)
	return &r
}

// A copy has all that the record has, and shares nothing that could be written.
func TestCloneIsDeep(t *testing.T) {
	t.Parallel()
	r := full()
	c := r.Clone()
	if diff := cmp.Diff(full(), c); diff != "" {
		t.Errorf("the copy (-record +copy):\n%s", diff)
	}
	spoil(reflect.ValueOf(c).Elem())
	if diff := cmp.Diff(full(), r); diff != "" {
		t.Errorf("the record, after its copy was written to (-before +after):\n%s", diff)
	}
	if (*store.Record)(nil).Clone() != nil || !reflect.DeepEqual(new(store.Record).Clone(), new(store.Record)) {
		t.Error("nothing is copied to something")
	}
}

// Decisions and handovers that differ in one field differ.
func TestEqualSeesEachField(t *testing.T) {
	t.Parallel()
	for _, v := range []any{store.Decision{}, store.Handover{}} {
		whole := reflect.New(reflect.TypeOf(v)).Elem()
		n := 0
		storetest.Fill(whole, &n)
		equal := func(other reflect.Value) bool {
			return whole.MethodByName("Equal").Call([]reflect.Value{other})[0].Bool()
		}
		if !equal(whole) {
			t.Errorf("%+v differs from itself", whole)
		}
		for i := range whole.NumField() {
			other := reflect.New(whole.Type()).Elem()
			other.Set(whole)
			other.Field(i).SetZero()
			if equal(other) {
				t.Errorf("%T without its %s is the same", v, whole.Type().Field(i).Name)
			}
		}
	}
}
