package lock

import (
	"fmt"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Shape describes the JSON of a type. The shape of a scalar, or of a type with its own
// encoding, is a name. The shape of a list is a list that holds the shape of the
// elements. The shape of a struct is an object with the shapes of the fields. The shape
// of a map is an object with one field, *, which holds the shape of the map's values.
type Shape any

// ShapeOf returns the shape of a type's JSON. The function own reports whether a type has
// its own encoding. The shape of a very large type, as in a provider's library, is the
// type's name.
func ShapeOf(t types.Type, own func(types.Type) bool) Shape {
	left := 10_000
	return shapes{own, nil, &left}.of(t)
}

type shapes struct {
	own    func(types.Type) bool
	within []types.Type // the types that contain the type being described
	left   *int         // how many more types may get a shape; all further types get a name
}

func (s shapes) of(t types.Type) Shape {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		return s.of(p.Elem())
	}
	name := types.TypeString(t, (*types.Package).Path)
	*s.left--
	if *s.left < 0 || slices.ContainsFunc(s.within, func(outer types.Type) bool { return types.Identical(outer, t) }) || s.own(t) {
		return name
	}
	inner := shapes{s.own, append(slices.Clone(s.within), t), s.left}
	if shape := inner.form(t); shape != nil && *s.left >= 0 {
		return shape
	}
	return name
}

// shapes.form returns the shape of a non-pointer type's JSON; nil if JSON can't encode
// the type.
func (s shapes) form(t types.Type) Shape {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return scalar(u)
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Byte {
			return "bytes"
		}
		return []any{s.of(u.Elem())}
	case *types.Array:
		return []any{s.of(u.Elem())}
	case *types.Map:
		return map[string]any{"*": s.of(u.Elem())}
	case *types.Struct:
		fields := make(map[string]any)
		s.addFields(fields, u)
		return fields
	case *types.Interface:
		return "any"
	}
	return nil
}

func scalar(b *types.Basic) Shape {
	switch {
	case b.Info()&types.IsInteger != 0:
		return "int"
	case b.Info()&types.IsFloat != 0:
		return "float"
	case b.Info()&types.IsBoolean != 0:
		return "bool"
	default:
		return "string"
	}
}

// addFields adds the fields that a struct has in JSON to the map all. If the struct and
// an embedded struct have fields of the same name, the field of the outer struct wins.
func (s shapes) addFields(all map[string]any, u *types.Struct) {
	if *s.left--; *s.left < 0 {
		return
	}
	for i := range u.NumFields() {
		f := u.Field(i)
		tag := reflect.StructTag(u.Tag(i)).Get("json")
		if tag == "-" {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if f.Embedded() && name == "" {
			t := f.Type()
			if p, ok := types.Unalias(t).(*types.Pointer); ok {
				t = p.Elem()
			}
			if inner, ok := t.Underlying().(*types.Struct); ok && !s.own(t) {
				promoted := make(map[string]any)
				s.addFields(promoted, inner)
				for name, shape := range promoted {
					if _, outer := all[name]; !outer {
						all[name] = shape
					}
				}
				continue
			}
		}
		if !f.Exported() {
			continue
		}
		if name == "" {
			name = f.Name()
		}
		all[name] = s.of(f.Type())
		if strings.Contains(opts, "string") {
			all[name] = "string"
		}
	}
}

// lost checks whether the engine can read a value that was stored with the former shape
// (was) as a value with the present shape (is). If so, lost returns "". Otherwise, lost
// returns the part that doesn't fit, and the reason.
func lost(was, is Shape, at string) string {
	switch {
	case reflect.DeepEqual(was, is), is == "any", was == "int" && is == "float":
		return ""
	}
	switch was := was.(type) {
	case map[string]any:
		now, ok := is.(map[string]any)
		if !ok || isMap(was) != isMap(now) {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(was)) {
			shape, found := now[name]
			for other, s := range now {
				if !found && strings.EqualFold(other, name) {
					shape, found = s, true
				}
			}
			if !found {
				return fmt.Sprintf("%s.%s is removed", at, name)
			}
			if why := lost(was[name], shape, at+"."+name); why != "" {
				return why
			}
		}
		return ""
	case []any:
		if now, _ := is.([]any); len(was) == 1 && len(now) == 1 {
			return lost(was[0], now[0], at+"[…]")
		}
	}
	return fmt.Sprintf("%s was %s and is now %s", at, inWords(was), inWords(is))
}

func isMap(shape map[string]any) bool {
	_, ok := shape["*"]
	return ok && len(shape) == 1
}

func inWords(s Shape) string {
	switch s := s.(type) {
	case nil:
		return "unknown"
	case string:
		return s
	case []any:
		return "a list"
	case map[string]any:
		if isMap(s) {
			return "a map"
		}
		return "a struct"
	}
	return fmt.Sprint(s)
}
