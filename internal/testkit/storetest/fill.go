package storetest

import (
	"fmt"
	"reflect"
	"time"
)

// Fill sets each field of v. Each list and each map gets one entry. Fill increments the
// counter n for each value, and makes the value from n, so that no two strings,
// integers or times are equal.
func Fill(v reflect.Value, n *int) {
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
			Fill(field, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		Fill(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		Fill(key, n)
		Fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default: // a Seal
	}
}
