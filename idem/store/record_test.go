package store_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
)

// fill gives each field of a value a value, with one entry in each list and map.
func fill(v reflect.Value, n *int) {
	*n++
	if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
		*at = time.UnixMilli(int64(*n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n%250 + 1))
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default: // a Seal
	}
}

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
	fill(reflect.ValueOf(&r).Elem(), &n)
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
		fill(whole, &n)
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
