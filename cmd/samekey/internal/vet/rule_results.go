package vet

import (
	"go/ast"
	"go/types"
	"reflect"
	"strings"
)

var results = newRule("results", "find results of phases, and arguments of jobs, that don't survive JSON", checkResults)

// checkResults finds results of phases, and arguments of jobs, whose type loses a field in
// JSON. At run time, the engine would refuse the result of the phase, but a job would
// arrive without the field.
func checkResults(c *code) (all []finding) {
	for _, p := range c.phases {
		if p.kind == finish || p.result == nil || p.via && !p.open {
			continue
		}
		l := losses{back: true, seen: make(map[types.Type]bool)}
		if at, why := l.of(p.result, c.typeName(p.result)); at != "" {
			all = append(all, found(p.call, "%s doesn't survive the JSON in which the result of a phase is stored: %s. "+
				"Return a struct whose exported fields hold what later phases need", at, why))
		}
	}
	c.inspect(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return
		}
		fn, ok := calleeOf(c.info, call).(*types.Func)
		if !ok || fn.FullName() != idemPath+".NewJob" {
			return
		}
		t := c.info.TypeOf(call.Args[1])
		l := losses{seen: make(map[types.Type]bool)}
		if at, why := l.of(t, c.typeName(t)); at != "" {
			all = append(all, found(call.Args[1], "%s doesn't survive the JSON in which a job is stored: %s. "+
				"Give the job a struct of exported fields", at, why))
		}
	})
	return all
}

func (c *code) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == c.pkg {
			return ""
		}
		return p.Name()
	})
}

// losses is a search for the parts of a type that encoding/json omits or refuses. If back
// is set, the search also finds the parts that encoding/json can't decode.
type losses struct {
	back bool
	seen map[types.Type]bool
}

// losses.of returns the first lost part, as a Go expression, and the reason why it is lost.
func (l losses) of(t types.Type, at string) (part, why string) {
	t = types.Unalias(t)
	if l.seen[t] {
		return "", ""
	}
	l.seen[t] = true
	if _, ok := t.(*types.TypeParam); ok {
		return "", ""
	}
	if own, lossy := ownForm(t); own {
		if l.back && lossy != "" {
			return at, lossy
		}
		return "", ""
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Info()&types.IsComplex != 0 || u.Kind() == types.UnsafePointer {
			return at, "JSON has no " + u.Name()
		}
	case *types.Chan:
		return at, "JSON has no channels"
	case *types.Signature:
		return at, "JSON has no functions"
	case *types.Interface:
		if l.back && u.NumMethods() > 0 {
			return at, "JSON can't be decoded into the interface " + types.TypeString(t, (*types.Package).Name)
		}
	case *types.Pointer:
		return l.of(u.Elem(), at)
	case *types.Slice:
		return l.of(u.Elem(), at+"[…]")
	case *types.Array:
		return l.of(u.Elem(), at+"[…]")
	case *types.Map:
		if !isKey(u.Key()) {
			return at, "JSON has no maps with keys of type " + types.TypeString(u.Key(), (*types.Package).Name)
		}
		return l.of(u.Elem(), at+"[…]")
	case *types.Struct:
		return l.ofStruct(u, at)
	}
	return "", ""
}

func (l losses) ofStruct(s *types.Struct, at string) (part, why string) {
	for i := range s.NumFields() {
		f := s.Field(i)
		tag := reflect.StructTag(s.Tag(i)).Get("json")
		where := strings.TrimPrefix(at, "*") + "." + f.Name()
		switch {
		case f.Name() == "_" || holdsNothing(f.Type()):
		case tag == "-":
			return where, "its tag is `json:\"-\"`"
		case !f.Exported() && !seenEmbedded(f):
			return where, "the field is not exported"
		default:
			if part, why = l.of(f.Type(), where); part != "" {
				return part, why
			}
		}
	}
	return "", ""
}

// seenEmbedded reports whether a field is an embedded struct. JSON encodes the fields of
// an embedded struct even if the struct's type is unexported.
func seenEmbedded(f *types.Var) bool {
	if !f.Embedded() {
		return false
	}
	_, ok := f.Type().Underlying().(*types.Struct)
	return ok
}

// holdsNothing reports whether a type has only one value, like struct{}.
func holdsNothing(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if !holdsNothing(f.Type()) {
			return false
		}
	}
	return true
}

// isKey reports whether JSON can write and read maps with keys of this type.
func isKey(t types.Type) bool {
	if b, ok := t.Underlying().(*types.Basic); ok && b.Info()&(types.IsString|types.IsInteger) != 0 {
		return true
	}
	if _, ok := t.(*types.TypeParam); ok {
		return true
	}
	return method(t, "MarshalText") != nil && method(t, "UnmarshalText") != nil
}

// ownForm reports whether a type has its own JSON encoding. If this encoding loses data,
// lossy says how.
func ownForm(t types.Type) (own bool, lossy string) {
	if _, ok := t.Underlying().(*types.Interface); ok {
		return false, ""
	}
	for _, form := range []string{"JSON", "Text"} {
		write, read := method(t, "Marshal"+form), method(t, "Unmarshal"+form)
		if write == nil {
			continue
		}
		switch {
		case read == nil:
			return true, "it has Marshal" + form + " but no Unmarshal" + form
		case promotedOverFields(t, write):
			return true, "its Marshal" + form + " comes from an embedded field, and leaves the other fields out"
		}
		return true, ""
	}
	return false, ""
}

// The function method returns the method of t or *t with the given name. It returns nil if
// there is none, or if the method has more parameters than a marshaler or unmarshaler.
func method(t types.Type, name string) *types.Func {
	if _, ok := types.Unalias(t).(*types.Pointer); !ok {
		t = types.NewPointer(t)
	}
	sel := types.NewMethodSet(t).Lookup(nil, name)
	if sel == nil {
		return nil
	}
	fn, _ := sel.Obj().(*types.Func)
	if fn == nil || fn.Signature().Params().Len() > 1 {
		return nil
	}
	return fn
}

// promotedOverFields reports whether a struct's method comes from an embedded field
// although the struct has other fields.
func promotedOverFields(t types.Type, fn *types.Func) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || s.NumFields() < 2 {
		return false
	}
	own := namedOf(fn.Signature().Recv().Type())
	named, _ := types.Unalias(t).(*types.Named)
	return named == nil || own == nil || own.Origin() != named.Origin()
}
