package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// finding is a mistake in the code: its place, and a message that says what to do.
type finding struct {
	at      ast.Node
	message string
}

func found(at ast.Node, format string, args ...any) finding {
	return finding{at, fmt.Sprintf(format, args...)}
}

const ignoreMark = "//samekey:ignore"

// ignored is a comment that suppresses a rule's findings on its own line and on the next
// line.
type ignored struct {
	at           *ast.Comment
	line         int
	file         string
	rule, reason string
}

func ignoresOf(fset *token.FileSet, file *ast.File) (all []ignored) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			rest, ok := strings.CutPrefix(c.Text, ignoreMark)
			if !ok {
				continue
			}
			rule, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
			p := fset.Position(c.Pos())
			all = append(all, ignored{c, p.Line, p.Filename, rule, strings.TrimSpace(reason)})
		}
	}
	return all
}

// report reports a rule's findings, except those that a comment suppresses. It also
// reports comments for this rule that suppress nothing.
func report(pass *analysis.Pass, c *code, rule string, all []finding) {
	used := make(map[*ast.Comment]bool)
	reported := make(map[token.Pos]bool)
	for _, f := range all {
		p := pass.Fset.Position(f.at.Pos())
		i := slices.IndexFunc(c.ignored, func(ig ignored) bool {
			return ig.rule == rule && ig.reason != "" && ig.file == p.Filename && (ig.line == p.Line || ig.line == p.Line-1)
		})
		switch {
		case i >= 0:
			used[c.ignored[i].at] = true
		case !reported[f.at.Pos()]:
			reported[f.at.Pos()] = true
			pass.Report(analysis.Diagnostic{
				Pos: f.at.Pos(), End: f.at.End(), Category: rule, Message: rule + ": " + f.message, URL: page + rule,
			})
		}
	}
	for _, ig := range c.ignored {
		if ig.rule == rule && ig.reason != "" && !used[ig.at] {
			pass.Report(analysis.Diagnostic{
				Pos: ig.at.Pos(), Category: rule, URL: page + "ignore",
				Message: rule + ": this comment suppresses nothing: remove it, or move it to the line of the finding",
			})
		}
	}
}

// The ignores analyzer checks that each suppressing comment names an existing rule and a
// reason.
var ignores = &analysis.Analyzer{
	Name: "ignore", URL: page + "ignore",
	Doc:      "find " + ignoreMark + " comments without a rule or a reason",
	Requires: []*analysis.Analyzer{finder},
}

// Run is set here because Run calls Analyzers, and Analyzers lists ignores. The compiler
// would refuse this cycle in the declaration of ignores.
func init() {
	ignores.Run = func(pass *analysis.Pass) (any, error) {
		for _, ig := range pass.ResultOf[finder].(*code).ignored {
			known := slices.ContainsFunc(Analyzers(), func(a *analysis.Analyzer) bool { return a.Name == ig.rule && a != ignores })
			switch {
			case !known:
				pass.ReportRangef(ig.at, "ignore: unknown rule %q: write %s RULE REASON", ig.rule, ignoreMark)
			case ig.reason == "":
				pass.ReportRangef(ig.at, "ignore: no reason: write %s %s REASON", ignoreMark, ig.rule)
			}
		}
		return nil, nil
	}
}
