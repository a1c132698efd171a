package pages_test

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/doc"
	"go/parser"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/quota"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/metrics"
	"github.com/samekey/samekey/lambda/worker"
	"github.com/samekey/samekey/seal"
)

var (
	amount = regexp.MustCompile(`^(an?|[0-9.]+)(?: (KiB|MiB|second|minute|hour|day)s?)?$`)
	scale  = map[string]float64{
		"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "second": float64(time.Second), "minute": float64(time.Minute), "hour": float64(time.Hour),
		"day": float64(24 * time.Hour),
	}
)

// value is the default where its comment names a number or a constant, else nil.
func (o option) value(pkg string, known map[string]constant.Value) constant.Value {
	s, _, _ := strings.Cut(docLink.ReplaceAllString(o.defaultsTo, "$1"), ",")
	if m := amount.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			n = 1 // a, an
		}
		return constant.MakeFloat64(n * scale[m[2]])
	}
	if e, err := parser.ParseExpr(s); err == nil {
		if v := evaluate(e, pkg, known); v.Kind() != constant.Unknown {
			return v
		}
	}
	return nil
}

// Every exported name and every option says in its comment what it is: pkg.go.dev is the
// reference of names.
func TestNamesAreExplained(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range exported(t) {
		for _, n := range p.names() {
			if seen++; n.first == "" {
				t.Errorf("%s.%s has no comment", p.Name, n.name)
			}
		}
		for _, typ := range p.Types {
			if !strings.HasSuffix(typ.Name, "Options") {
				continue
			}
			for _, o := range p.options(typ) {
				if seen++; o.first == "" {
					t.Errorf("%s.%s.%s has no comment", p.Name, typ.Name, o.name)
				}
			}
		}
	}
	if seen < 500 {
		t.Errorf("%d names seen: something is wrong with this test", seen)
	}
}

type namedThing struct{ name, first string }

func (p *goPackage) names() []namedThing {
	var all []namedThing
	values := func(groups []*doc.Value) {
		for _, group := range groups {
			for _, spec := range group.Decl.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, name := range v.Names {
					if name.IsExported() {
						all = append(all, namedThing{name.Name, p.first(cmp.Or(v.Doc.Text(), v.Comment.Text(), group.Doc))})
					}
				}
			}
		}
	}
	funcs := func(fns []*doc.Func) {
		for _, f := range fns {
			all = append(all, namedThing{f.Name, p.first(f.Doc)})
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		all = append(all, namedThing{typ.Name, p.first(typ.Doc)})
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
	}
	slices.SortFunc(all, func(a, b namedThing) int { return strings.Compare(a.name, b.name) })
	return all
}

// A comment's "Default: …" is what the code does, where it names a number or a
// constant; an option whose comment names none is zero.
func TestDefaultsAreTrue(t *testing.T) {
	t.Parallel()
	actual := map[string]reflect.Value{
		"idem.Options":      within[idem.Options](t, idem.New(&idem.MemoryStore{})),
		"client.Options":    within[client.Options](t, client.New(nil)),
		"completer.Options": within[completer.Options](t, completer.New(&idem.MemoryStore{}, &completer.Queue{}, completer.Functions{})),
	}
	var store *dynamo.Store
	actual["dynamo.Options"] = captured(func(fn func(*dynamo.Options)) {
		var err error
		if store, err = dynamo.New(dynamoAPI{}, "table", fn); err != nil {
			t.Fatal(err)
		}
	})
	actual["webhook.VerifierOptions"] = captured(func(fn func(*webhook.VerifierOptions)) {
		if _, err := webhook.NewStripe("whsec_secret", fn); err != nil {
			t.Fatal(err)
		}
	})
	journal, err := client.OpenJournal(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	keep := time.Duration(reflect.ValueOf(journal).Elem().FieldByName("keep").Int())
	actual["client.JournalOptions"] = reflect.ValueOf(client.JournalOptions{Keep: keep})
	drain := stream.NewDrain(store, jobs.Route{})
	actual["stream.DrainOptions"] = within[stream.DrainOptions](t, drain)
	actual["stream.CompleterOptions"] = within[stream.CompleterOptions](t, stream.NewCompleter(&completer.Queue{}))
	actual["worker.Options"] = within[worker.Options](t, worker.New(scanAPI{}, store, &completer.Queue{}))
	provider, err := seal.NewStatic("k", map[string][]byte{"k": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	actual["seal.Options"] = within[seal.Options](t, seal.New(provider))
	actual["quota.Options"] = captured(func(fn func(*quota.Options)) { quota.New(quota.Limits{}, fn) })
	actual["metrics.Options"] = within[metrics.Options](t, metrics.New(io.Discard, "app"))
	actual["stream.SweepOptions"] = within[stream.SweepOptions](t, stream.NewSweep(scanAPI{}, store))

	all := exported(t)
	known := constants(all)
	checked := 0
	for _, p := range all {
		for _, typ := range p.Types {
			if !strings.HasSuffix(typ.Name, "Options") {
				continue
			}
			name := p.Name + "." + typ.Name
			for _, o := range p.options(typ) {
				of := actual[name]
				if !of.IsValid() {
					if o.numeric() {
						t.Errorf("%s has a number, and this test makes none of it", name)
					}
					continue
				}
				f := of.FieldByName(o.name)
				got, ok := number(f)
				if !ok {
					continue
				}
				checked++
				want := 0.0
				if v := o.value(p.Name, known); v != nil {
					want, _ = constant.Float64Val(constant.ToFloat(v))
				}
				if got != want {
					t.Errorf("%s.%s is %v by default; its comment says %q", name, o.name, f, o.defaultsTo)
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d numbers checked: something is wrong with this test", checked)
	}
}

func (o option) numeric() bool {
	return slices.Contains([]string{"int", "int32", "int64", "float64", "time.Duration"}, o.typ)
}

func number(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// within finds the T that x holds, in a field of its own or of a struct that it embeds.
func within[T any](t *testing.T, x any) reflect.Value {
	t.Helper()
	fields := reflect.VisibleFields(reflect.TypeOf(x).Elem())
	i := slices.IndexFunc(fields, func(f reflect.StructField) bool { return f.Type == reflect.TypeFor[T]() })
	if i < 0 {
		t.Fatalf("a %T holds no %v", x, reflect.TypeFor[T]())
	}
	return reflect.ValueOf(x).Elem().FieldByIndex(fields[i].Index)
}

// captured is the T that a constructor hands to its functions.
func captured[T any](construct func(func(*T))) reflect.Value {
	var opt T
	construct(func(o *T) { opt = *o })
	return reflect.ValueOf(opt)
}

type (
	dynamoAPI struct{ dynamo.API }
	scanAPI   struct{ worker.API }
)
