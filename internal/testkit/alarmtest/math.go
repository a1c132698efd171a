package alarmtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// compile reads an expression of metric math. It knows numbers, the ids of queries, + - * /,
// comparisons, FILL(id, number) and IF(condition, a, b).
func compile(text string) (ast.Expr, error) {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("the expression %s: %w", text, err)
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.ParenExpr, *ast.BasicLit, *ast.Ident, *ast.BinaryExpr:
		case *ast.CallExpr:
			name, _ := n.Fun.(*ast.Ident)
			fill := name != nil && name.Name == "FILL" && len(n.Args) == 2
			choice := name != nil && name.Name == "IF" && len(n.Args) == 3
			if !fill && !choice {
				err = fmt.Errorf("the expression %s calls an unknown function", text)
			}
		default:
			err = fmt.Errorf("the expression %s has a part that is not known here: %T", text, n)
		}
		return err == nil
	})
	return e, err
}

// evaluate returns the value of an expression, or false if the expression has no value.
// An expression has no value if it divides by zero, or if it uses a query that has no
// data and isn't inside a FILL.
func evaluate(text string, values map[string]float64) (float64, bool) {
	e, err := compile(text)
	if err != nil {
		return 0, false
	}
	return eval(e, values)
}

func eval(e ast.Expr, values map[string]float64) (float64, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return eval(e.X, values)
	case *ast.BasicLit:
		v, err := strconv.ParseFloat(e.Value, 64)
		return v, err == nil
	case *ast.Ident:
		v, ok := values[e.Name]
		return v, ok
	case *ast.CallExpr:
		return call(e, values)
	case *ast.BinaryExpr:
		x, okX := eval(e.X, values)
		y, okY := eval(e.Y, values)
		if !okX || !okY {
			return 0, false
		}
		return operate(e.Op, x, y)
	}
	return 0, false
}

func call(e *ast.CallExpr, values map[string]float64) (float64, bool) {
	first, ok := eval(e.Args[0], values)
	if e.Fun.(*ast.Ident).Name == "FILL" {
		if ok {
			return first, true
		}
		return eval(e.Args[1], values)
	}
	switch {
	case !ok:
		return 0, false
	case first != 0:
		return eval(e.Args[1], values)
	}
	return eval(e.Args[2], values)
}

func operate(op token.Token, x, y float64) (float64, bool) {
	yes := func(b bool) (float64, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	switch op { //nolint:exhaustive // the other tokens are no operations of metric math
	case token.ADD:
		return x + y, true
	case token.SUB:
		return x - y, true
	case token.MUL:
		return x * y, true
	case token.QUO:
		if y == 0 { // in CloudWatch, a division by zero has no value
			return 0, false
		}
		return x / y, true
	case token.GTR:
		return yes(x > y)
	case token.GEQ:
		return yes(x >= y)
	case token.LSS:
		return yes(x < y)
	case token.LEQ:
		return yes(x <= y)
	}
	return 0, false
}
