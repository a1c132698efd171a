// Package handlers has handlers for the lock file in this folder.
package handlers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/samekey/samekey/idem"
)

type response = idem.Response

type Payments interface {
	Charge(ctx context.Context, amount int, key string) (Charge, error)
}

type (
	Charge struct {
		ID string `json:"id"`
	}
	base struct {
		At   time.Time
		Name string
	}
	Order struct {
		base
		ID     string `json:"id,omitempty"`
		Total  float64
		Count  int `json:",string"`
		Lines  []Line
		By     map[string]*Line
		Data   []byte
		Any    any
		Parent *Order
	}
	Line struct{ Price int }
	App  struct {
		payments Payments
		memory   time.Duration
	}
)

const ordered = "ordered"

func one(context.Context, *idem.Tx) (int, error) { return 1, nil }

// App.book is a handler, and pay is a part of it.
func (a *App) book(ctx context.Context, lines []Line) (response, error) { // want `handler App.book, ordered, charged < ordered, line/\* < ordered < charged < line/\*$`
	_, err := idem.Atomic(ctx, ordered, func(context.Context, *idem.Tx) (o Order, err error) {
		return o, nil
	})
	if err != nil {
		return response{}, err
	}
	if err := a.pay(ctx); err != nil {
		return response{}, err
	}
	for i := range lines {
		if err := a.reserve(ctx, fmt.Sprintf("line/%d", i)); err != nil {
			return response{}, err
		}
	}
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) { return response{Status: 201}, nil })
}

func (a *App) pay(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (Charge, error) {
		if _, err := a.payments.Charge(ctx, 3, tx.Key("payments", "tip")); err != nil {
			return Charge{}, err
		}
		return a.charge(ctx, tx)
	}, idem.Remembers(48*time.Hour))
	return err
}

func (a *App) charge(ctx context.Context, tx *idem.Tx) (Charge, error) {
	return a.payments.Charge(ctx, 20, tx.Key("payments"))
}

// App.reserve is a wrapper: its phase belongs to the caller.
func (a *App) reserve(ctx context.Context, name string) error {
	_, err := idem.Atomic(ctx, name, one)
	return err
}

// App.refund is a handler of functions that have phases.
func (a *App) refund(ctx context.Context) error { // want `handler App.refund, looked_up, charged < looked_up$`
	if err := a.look(ctx); err != nil {
		return err
	}
	return a.pay(ctx)
}

func (a *App) look(ctx context.Context) error {
	_, err := idem.Foreign(ctx, "looked_up", one, idem.NotIdempotent())
	return err
}

// App.route is not a handler: each branch is a handler.
func (a *App) route(ctx context.Context, path string) (response, error) {
	if path == "/refunds" {
		return response{}, a.refund(ctx)
	}
	return a.book(ctx, nil)
}

// start has two handlers, and each has its own order of phases.
func start(handle func(string, func(context.Context) error)) {
	handle("POST /a", func(ctx context.Context) error { // want `handler start POST /a, a$`
		_, err := idem.Atomic(ctx, "a", one)
		return err
	})
	handle("POST /b", func(ctx context.Context) error { // want `handler start POST /b, version, new < version, old < version$`
		version, err := idem.Atomic(ctx, "version", func(context.Context, *idem.Tx) (int, error) { return 2, nil })
		if err != nil {
			return err
		}
		if version >= 2 {
			_, err = idem.Atomic(ctx, "new", one)
			return err
		}
		_, err = idem.Atomic(ctx, "old", one)
		return err
	})
}

// App.again comes back to itself.
func (a *App) again(ctx context.Context, n int) error { // want `handler App.again, again, again < again$`
	idem.Atomic(ctx, "again", one)
	return a.again(ctx, n-1)
}

// lookTwice has a part twice.
func (a *App) lookTwice(ctx context.Context) error { // want `handler App.lookTwice, looked_up, looked_up < looked_up$`
	a.look(ctx)
	return a.look(ctx)
}

// App.pair is a part of pairs.
func (a *App) pair(ctx context.Context) {
	idem.Atomic(ctx, "left", one)
	idem.Foreign(ctx, "right", func(_ context.Context, tx *idem.Tx) (int, error) { return a.keys(tx, 2), nil }, idem.Remembers(a.memory))
}

func (a *App) keys(tx *idem.Tx, n int) int {
	tx.Key("payments", fmt.Sprint("part/", n))
	tx.Key("payments", fmt.Sprint("part/", n-1))
	return a.keys(tx, n-1)
}

func (a *App) pairs(ctx context.Context) { // want `handler App.pairs, left, right < left, looked_up < left < right$`
	a.pair(ctx)
	a.look(ctx)
}

// App.only runs only a Finish.
func (a *App) only(ctx context.Context) (response, error) {
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (response, error) { return response{Status: 201}, nil })
}

// App.logged is not a handler, though it also makes other calls.
func (a *App) logged(ctx context.Context) error {
	a.note()
	return a.refund(ctx)
}

func (a *App) note() {}

var inPackage = func(ctx context.Context) { // want `handler func 1, in a package$`
	idem.Atomic(ctx, "in a package", one)
}

var made func(string) string

// In the file, names of phases have * for parts that are not constant.
func names(ctx context.Context, id string, n int) { // want `handler names, a/\*, b/\* < a/\*, c/\* < a/\* < b/\*, \*/ < .*, \* < .*, \* < .*, 100%/\* < .*, \* < .*`
	idem.Atomic(ctx, "a/"+id, one)
	idem.Atomic(ctx, fmt.Sprint("b/", n-1), one)
	name := "c/" + id
	idem.Atomic(ctx, name, one)
	var grown string
	grown = grown + "/"
	idem.Atomic(ctx, grown, one)
	idem.Atomic(ctx, strings.ToUpper("d"), one)
	idem.Atomic(ctx, fmt.Sprintf(id), one)
	idem.Atomic(ctx, fmt.Sprintf("100%%/%d", n), one)
	idem.Atomic(ctx, made("d"), func(context.Context, *idem.Tx) (int, error) { return len(made("d")), nil })
}

type route struct {
	name string
	run  func(context.Context)
}

// routes has handlers that are called by their keys, their first texts, and numbers.
func routes(handle func(n int, names, more string, run func(context.Context))) map[string]func(context.Context) {
	handle(1, "first", "second", func(ctx context.Context) { // want `handler routes first, a$`
		idem.Atomic(ctx, "a", one)
	})
	r := route{run: func(ctx context.Context) { idem.Atomic(ctx, "b", one) }} // want `handler routes 1, b$`
	f := func(ctx context.Context) { idem.Atomic(ctx, "c", one) }             // want `handler routes 2, c$`
	g := func() {}
	return map[string]func(context.Context){
		"d": func(ctx context.Context) { idem.Atomic(ctx, "d", one) }, // want `handler routes d, d$`
		"e": f, r.name: r.run, fmt.Sprint(g): nil,
	}
}
