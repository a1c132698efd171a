package rules

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// compared are the functions that compare what only its owner can know, and the
// function that each compares by, in constant time. The time of any other comparison
// tells how much of a guess is right.
var compared = []struct{ file, function, by string }{
	{"idem/fingerprint.go", "matches", "hmac.Equal"}, // fingerprints and credentials
	{"idem/webhook/stripe.go", "hmacKey", "hmac.Equal"},
	{"idem/webhook/standard.go", "standardKey", "ed25519.Verify"}, // and hmacKey
	{"cmd/samekey/internal/ui/guard.go", "same", "subtle.ConstantTimeCompare"},
}

func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	for _, c := range compared {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := comparesBy(string(src), c.function, c.by); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
	}
	for name, tc := range map[string]struct{ body, says string }{
		"in constant time": {"return hmac.Equal(stored, want)", ""},
		"converted":        {"return hmac.Equal([]byte(stored), []byte(want))", ""},
		"something else":   {"if len(stored) == 0 { return false }; return hmac.Equal(stored, want)", ""},
		"by ==":            {"return stored == want", "doesn't call hmac.Equal"},
		"by bytes.Equal":   {"return bytes.Equal(stored, want)", "doesn't call hmac.Equal"},
		"first by ==":      {"return stored == want || hmac.Equal(stored, want)", "stored is compared by =="},
		"first by !=":      {"if want != stored { return false }; return hmac.Equal(stored, want)", "want is compared by !="},
		"first by bytes":   {"return bytes.Equal(stored, x) && hmac.Equal(stored, want)", "stored is compared by bytes.Equal"},
		"one byte":         {"return stored[0] == want[0] && hmac.Equal(stored, want)", "stored is compared by =="},
	} {
		err := comparesBy("package p\nfunc matches() bool { "+tc.body+" }", "matches", "hmac.Equal")
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
	}
	if err := comparesBy("package p", "matches", "hmac.Equal"); err == nil {
		t.Error("a function that is gone passes")
	}
}

// comparesBy demands that a function of src calls by, and doesn't compare the
// variables of that call in any other way, but for their lengths.
func comparesBy(src, function, by string) error {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Name.Name != function {
			continue
		}
		secret := make(map[string]bool)
		ast.Inspect(fn, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && nameOf(call.Fun) == by {
				for _, arg := range call.Args {
					variables(arg, by, secret)
				}
			}
			return true
		})
		if len(secret) == 0 {
			return fmt.Errorf("%s doesn't call %s", function, by)
		}
		var errs []error
		ast.Inspect(fn, func(n ast.Node) bool {
			how, operands := "", []ast.Expr(nil)
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					how, operands = n.Op.String(), []ast.Expr{n.X, n.Y}
				}
			case *ast.CallExpr:
				if name := nameOf(n.Fun); name != by && (strings.HasSuffix(name, "Equal") || strings.HasSuffix(name, "Compare") || strings.HasSuffix(name, "EqualFold")) {
					how, operands = name, n.Args
				}
			}
			for _, x := range operands {
				used := make(map[string]bool)
				variables(x, by, used)
				for name := range used {
					if secret[name] {
						errs = append(errs, fmt.Errorf("%s: %s is compared by %s", function, name, how))
					}
				}
			}
			return true
		})
		return errors.Join(errs...)
	}
	return fmt.Errorf("there is no %s", function)
}

// variables adds the variables in x, but for those of which only the length, or the
// result of by, counts.
func variables(x ast.Expr, by string, to map[string]bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := nameOf(n.Fun)
			return name != "len" && name != by
		case *ast.ArrayType: // of a conversion
			return false
		case *ast.Ident:
			to[n.Name] = true
		}
		return true
	})
}

// nameOf returns what is called: "hmac.Equal".
func nameOf(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.SelectorExpr:
		return nameOf(fun.X) + "." + fun.Sel.Name
	case *ast.Ident:
		return fun.Name
	}
	return ""
}
