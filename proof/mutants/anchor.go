package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// source is the code of a package without its tests: each declaration at the top
// level as a row of words.
type source struct {
	text  map[string][]byte // by the file's name
	decls map[string][]decl // by "Type.Method" or the declared name; more than one is an error of the line that asks
}

type decl struct {
	file  string
	words []word
}

// word is a token of the code or of a snippet.
type word struct {
	tok      token.Token
	lit      string
	from, to int

	// local is, in the code, where an identifier that belongs to the declaration was
	// declared (a parameter, a variable, a label), and 0 for any other word.
	local token.Pos
	// meta says, in a snippet, that the word is $lit, which stands for such an identifier.
	meta bool
}

// load reads the package in a folder, as it is compiled here.
func load(root, dir string) (*source, error) {
	dir = filepath.Join(root, filepath.FromSlash(dir))
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	text := make(map[string][]byte)
	for _, name := range pkg.GoFiles {
		if text[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return parse(text)
}

func parse(text map[string][]byte) (*source, error) {
	fset := token.NewFileSet()
	names := slices.Sorted(maps.Keys(text))
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, text[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	locals := localsOf(fset, files)
	s := &source{text: text, decls: make(map[string][]decl)}
	for i, f := range files {
		ws, err := words(text[names[i]], fset.File(f.Pos()).Base(), locals)
		if err != nil {
			return nil, err
		}
		for name, nodes := range declarations(f) {
			for _, n := range nodes {
				from, to := fset.Position(n.Pos()).Offset, fset.Position(n.End()).Offset
				begin := slices.IndexFunc(ws, func(w word) bool { return w.from >= from })
				end := slices.IndexFunc(ws, func(w word) bool { return w.from >= to })
				if end < 0 {
					end = len(ws)
				}
				s.decls[name] = append(s.decls[name], decl{names[i], ws[begin:end]})
			}
		}
	}
	return s, nil
}

// declarations returns what f declares at the top level.
func declarations(f *ast.File) map[string][]ast.Node {
	all := make(map[string][]ast.Node)
	add := func(name string, n ast.Node) { all[name] = append(all[name], n) }
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			add(name, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name.Name, s)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						add(n.Name, s)
					}
				}
			}
		}
	}
	return all
}

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// localsOf returns, for each identifier that belongs to a declaration, where it was
// declared. Imports aren't read: only what is declared in the package counts.
func localsOf(fset *token.FileSet, files []*ast.File) map[token.Pos]token.Pos {
	info := &types.Info{Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Error: func(error) {}} // the missing imports
	pkg, _ := conf.Check("p", fset, files, info)
	locals := make(map[token.Pos]token.Pos)
	add := func(id *ast.Ident, obj types.Object) {
		switch v := obj.(type) {
		case nil, *types.Func, *types.PkgName, *types.Builtin, *types.Nil:
			return
		case *types.Var:
			if v.IsField() {
				return
			}
		}
		if id.Name != "_" && obj.Pos().IsValid() && obj.Parent() != pkg.Scope() {
			locals[id.Pos()] = obj.Pos()
		}
	}
	for id, obj := range info.Defs {
		add(id, obj)
	}
	for id, obj := range info.Uses {
		add(id, obj)
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			// The v of switch v := x.(type) is an object in each of the clauses only.
			if s, ok := n.(*ast.TypeSwitchStmt); ok {
				if a, ok := s.Assign.(*ast.AssignStmt); ok {
					locals[a.Lhs[0].Pos()] = a.Lhs[0].Pos()
				}
			}
			return true
		})
	}
	return locals
}

// words cuts text into tokens, without comments and without the commas and
// semicolons that stand before a closing bracket in some layouts and not in others.
// In a snippet, which has no locals, $x is one word. base is the place of text among
// the positions of locals.
func words(text []byte, base int, locals map[token.Pos]token.Pos) ([]word, error) {
	snippet := locals == nil
	file := token.NewFileSet().AddFile("", -1, len(text))
	var errs scanner.ErrorList
	var s scanner.Scanner
	s.Init(file, text, func(pos token.Position, msg string) {
		if !snippet || !strings.HasPrefix(msg, "illegal character U+0024") {
			errs.Add(pos, msg)
		}
	}, 0)
	var ws []word
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		w := word{tok: tok, lit: lit, from: file.Offset(pos)}
		if !tok.IsLiteral() && tok != token.ILLEGAL {
			w.lit = tok.String()
		}
		w.to = w.from + len(w.lit)
		if snippet && tok == token.IDENT && len(ws) > 0 {
			if d := ws[len(ws)-1]; d.tok == token.ILLEGAL && d.to == w.from {
				ws, w.meta, w.from = ws[:len(ws)-1], true, d.from
			}
		}
		if !snippet && tok == token.IDENT {
			w.local = locals[token.Pos(base+w.from)]
		}
		closes := tok == token.RPAREN || tok == token.RBRACK || tok == token.RBRACE
		if n := len(ws) - 1; n >= 0 && closes && (ws[n].tok == token.COMMA || ws[n].tok == token.SEMICOLON) {
			ws = ws[:n]
		}
		ws = append(ws, w)
	}
	if n := len(ws) - 1; snippet && n >= 0 && ws[n].tok == token.SEMICOLON {
		ws = ws[:n]
	}
	return ws, errs.Err()
}

// binding is what the $x and the … of a snippet stand for.
type binding struct {
	name       map[string]word // of $x
	head, tail string          // of …
}

// rest stands for the begin or the end of a string.
const rest = "…"

// fits says whether the code's word c is the snippet's word w, and notes in b what
// w stands for.
func (b *binding) fits(c, w word) bool {
	switch {
	case w.meta:
		known, ok := b.name[w.lit]
		if c.local == 0 || ok && known.local != c.local {
			return false
		}
		b.name[w.lit] = c
		return true
	case c.tok != w.tok || c.local != 0:
		return false
	case c.tok == token.STRING:
		code, _ := strconv.Unquote(c.lit)
		want, _ := strconv.Unquote(w.lit)
		head, tail := strings.HasPrefix(want, rest), strings.HasSuffix(want, rest)
		if !head && !tail {
			return code == want
		}
		want = strings.TrimSuffix(strings.TrimPrefix(want, rest), rest)
		at := strings.Index(code, want)
		if strings.Count(code, want) != 1 || !head && at > 0 || !tail && at+len(want) < len(code) {
			return false
		}
		b.head, b.tail = code[:at], code[at+len(want):]
		return true
	}
	return c.lit == w.lit
}

// find returns where a snippet is in code, which must be once, and what it binds.
func find(code []word, snippet string, known binding) (begin, end int, bound binding, err error) {
	ws, err := words([]byte(snippet), 0, nil)
	if err == nil && len(ws) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return 0, 0, known, fmt.Errorf("the snippet is not Go: %s: %w", snippet, err)
	}
	times, best, near := 0, -1, word{}
	for i := range code[:max(0, len(code)-len(ws)+1)] {
		b := known
		b.name = make(map[string]word)
		maps.Copy(b.name, known.name)
		n := 0
		for n < len(ws) && b.fits(code[i+n], ws[n]) {
			n++
		}
		if n == len(ws) {
			begin, end, bound = i, i+n, b
			times++
		} else if n > best {
			best, near = n, code[i+n]
		}
	}
	switch {
	case times == 1:
		return begin, end, bound, nil
	case times == 0 && best > 0:
		err = fmt.Errorf("the snippet is not there; the nearest place has %q instead of %q after %q: %s",
			near.lit, snippet[ws[best].from:ws[best].to], snippet[:ws[best-1].to], snippet)
	default:
		err = fmt.Errorf("the snippet is there %d times, want once: %s", times, snippet)
	}
	return 0, 0, known, err
}

// fill returns a replacement with what its $x and its … stand for.
func (b binding) fill(snippet string) (string, error) {
	ws, err := words([]byte(snippet), 0, nil)
	if err != nil {
		return "", fmt.Errorf("the replacement is not Go: %s: %w", snippet, err)
	}
	var out strings.Builder
	at := 0
	for _, w := range ws {
		text := snippet[w.from:w.to]
		switch {
		case w.meta:
			c, ok := b.name[w.lit]
			if !ok {
				return "", fmt.Errorf("neither old nor where says what $%s is", w.lit)
			}
			text = c.lit
		case w.tok == token.STRING && strings.Contains(text, rest):
			s, _ := strconv.Unquote(text)
			if s == rest {
				s += rest
			}
			if t, ok := strings.CutPrefix(s, rest); ok {
				s = b.head + t
			}
			if t, ok := strings.CutSuffix(s, rest); ok {
				s = t + b.tail
			}
			text = strconv.Quote(s)
		}
		out.WriteString(snippet[at:w.from] + text)
		at = w.to
	}
	return out.String() + snippet[at:], nil
}
