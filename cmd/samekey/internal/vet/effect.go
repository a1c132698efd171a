package vet

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
)

// effect is a call that changes something outside of this process.
type effect struct {
	what string
	// twice says that a repeated call has a second effect.
	twice bool
}

// effectOf recognises calls with an effect. It knows calls of the AWS SDK and of
// stripe-go by the types of their parameters, and calls of net/http, net/smtp,
// database/sql and pgx by package and name. For calls of other clients, clientEffect
// decides. If a call may be a read, effectOf returns nil.
func (c *code) effectOf(call *ast.CallExpr) *effect {
	fn, ok := calleeOf(c.info, call).(*types.Func)
	if !ok || fn.Pkg() == nil {
		return nil
	}
	if eff := c.awsEffect(fn); eff != nil {
		return eff
	}
	if eff := c.stripeEffect(fn); eff != nil {
		return eff
	}
	switch name := fn.Name(); fn.Pkg().Path() {
	case "net/http":
		return c.httpEffect(call, fn)
	case "database/sql", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgxpool":
		if name == "Exec" || name == "ExecContext" {
			return &effect{what: c.nameOf(fn)}
		}
	case "net/smtp":
		if name == "SendMail" {
			return &effect{what: c.nameOf(fn), twice: true}
		}
	}
	return c.clientEffect(fn)
}

// receiverOf returns the name of a method's receiver type; "" for a function without a
// receiver.
func receiverOf(fn *types.Func) string {
	recv := fn.Signature().Recv()
	if recv == nil {
		return ""
	}
	if named := namedOf(recv.Type()); named != nil {
		return named.Obj().Name()
	}
	return ""
}

func namedOf(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, _ := types.Unalias(t).(*types.Named)
	return named
}

// nameOf returns a function's name. The name of the receiver's type precedes it:
// "App.save". If the function belongs to another package, the package's name comes
// first: "sqs.Client.SendMessage".
func (c *code) nameOf(fn *types.Func) string {
	name := fn.Name()
	if r := receiverOf(fn); r != "" {
		name = r + "." + name
	}
	if fn.Pkg() != c.pkg {
		name = fn.Pkg().Name() + "." + name
	}
	return name
}

var (
	awsService = regexp.MustCompile(`^github\.com/aws/aws-sdk-go(?:-v2)?/service/([a-z0-9]+)$`)
	awsWrite   = regexp.MustCompile(`^(Put|Update|Delete|Create|Send|Publish|Invoke|Start|Stop|Cancel|BatchWrite|TransactWrite|Copy|Complete|Add|Remove|Run|Terminate|Change)(?:[A-Z]|$)`)
	awsTwice   = regexp.MustCompile(`^(Send|Publish|Invoke|Start|Run|PutEvents|PutRecord)`)
	// services whose calls are not reported, because telemetry sent twice does no harm
	telemetry = map[string]bool{"cloudwatch": true, "cloudwatchlogs": true, "xray": true}
)

// awsEffect recognises an operation of the AWS SDK by the type of its input, such as
// *dynamodb.PutItemInput for PutItem.
func (c *code) awsEffect(fn *types.Func) *effect {
	for param := range fn.Signature().Params().Variables() {
		named := namedOf(param.Type())
		if named == nil || named.Obj().Pkg() == nil {
			continue
		}
		operation, isInput := strings.CutSuffix(named.Obj().Name(), "Input")
		m := awsService.FindStringSubmatch(named.Obj().Pkg().Path())
		if m == nil || !isInput || telemetry[m[1]] || strings.TrimSuffix(fn.Name(), "WithContext") != operation || !awsWrite.MatchString(operation) {
			continue
		}
		return &effect{c.nameOf(fn), awsTwice.MatchString(operation)}
	}
	return nil
}

var (
	stripePackage = regexp.MustCompile(`^github\.com/stripe/stripe-go(/|$)`)
	stripeWrite   = regexp.MustCompile(`^(New|Create|Update|Del|Delete|Cancel|Capture|Confirm|Reverse|Pay)$`)
)

// stripeEffect recognises a call of stripe-go by its parameters.
func (c *code) stripeEffect(fn *types.Func) *effect {
	for param := range fn.Signature().Params().Variables() {
		named := namedOf(param.Type())
		if named == nil || named.Obj().Pkg() == nil || !stripePackage.MatchString(named.Obj().Pkg().Path()) {
			continue
		}
		if strings.HasSuffix(named.Obj().Name(), "Params") && stripeWrite.MatchString(fn.Name()) {
			return &effect{c.nameOf(fn), fn.Name() != "Update" && !strings.HasPrefix(fn.Name(), "Del")}
		}
	}
	return nil
}

// httpEffect recognises requests by their HTTP method. A request with an unknown method
// counts as a read, because the request may be a GET.
func (c *code) httpEffect(call *ast.CallExpr, fn *types.Func) *effect {
	what := c.nameOf(fn)
	switch fn.Name() {
	case "Post", "PostForm": // methods of http.Client, and functions of package http
		return &effect{what, true}
	case "Do", "RoundTrip":
		method := c.methodOf(call.Args[0])
		switch method {
		case "POST", "PATCH":
			return &effect{what + " (" + method + ")", true}
		case "PUT", "DELETE":
			return &effect{what + " (" + method + ")", false}
		}
	}
	return nil
}

// methodOf returns the HTTP method of a request made by http.NewRequest; "" if the
// source doesn't show a constant method.
func (c *code) methodOf(req ast.Expr) string {
	switch e := ast.Unparen(req).(type) {
	case *ast.Ident:
		v, _ := c.info.ObjectOf(e).(*types.Var)
		if all := c.values[v]; len(all) == 1 {
			if call, isCall := ast.Unparen(all[0]).(*ast.CallExpr); isCall {
				return c.methodOf(call)
			}
		}
	case *ast.CallExpr:
		fn, ok := calleeOf(c.info, e).(*types.Func)
		if !ok {
			return ""
		}
		at := map[string]int{"net/http.NewRequest": 0, "net/http.NewRequestWithContext": 1}
		if i, known := at[fn.FullName()]; known && i < len(e.Args) {
			s, _ := c.constantString(e.Args[i])
			return s
		}
		if sel, _ := ast.Unparen(e.Fun).(*ast.SelectorExpr); fn.FullName() == "(*net/http.Request).WithContext" {
			return c.methodOf(sel.X)
		}
	}
	return ""
}

// The pattern verb matches the names of functions that have another effect in each
// call, such as Charge. The pattern noun matches those names that begin with a word
// that can also be a noun, such as Order. The pattern asRead matches names with an
// ending that is typical of reads, such as OrderStatus.
var (
	noun   = regexp.MustCompile(`^(Book|Credit|Debit|Deposit|Issue|Order|Post|Purchase|Transfer)(?:[A-Z]|$)`)
	asRead = regexp.MustCompile(`(By[A-Z]\w*|Count|Details|Exists|History|Info|Status|State)$`)
	verb   = regexp.MustCompile(`^(Authorize|Book|Capture|Charge|Create|Credit|Debit|Deposit|Issue|Notify|Order|Pay|Place|Post|Publish|Purchase|Refund|Reserve|Send|Submit|Transfer|Withdraw)(?:[A-Z]|$)`)
)

// clientEffect recognises calls of clients for which effectOf has no rule of its own.
// The name of the function decides. In addition, the function's first parameter must be
// a context, and the function must belong to an interface or to another package.
func (c *code) clientEffect(fn *types.Func) *effect {
	if c.decls[fn] != nil || !verb.MatchString(fn.Name()) || asRead.MatchString(fn.Name()) || strings.HasPrefix(fn.Pkg().Path(), "github.com/samekey/samekey/") && fn.Pkg() != c.pkg {
		return nil
	}
	params := fn.Signature().Params()
	if params.Len() < 2 || params.At(0).Type().String() != "context.Context" || noun.MatchString(fn.Name()) && params.Len() < 3 {
		return nil
	}
	for param := range params.Variables() { // awsEffect judges these
		if named := namedOf(param.Type()); named != nil && named.Obj().Pkg() != nil && awsService.MatchString(named.Obj().Pkg().Path()) {
			return nil
		}
	}
	return &effect{c.nameOf(fn), true}
}
