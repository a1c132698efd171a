// Package assigns has handlers for the rule assigns.
package assigns

import (
	"context"

	"github.com/samekey/samekey/idem"
)

type Order struct {
	ID    string
	Total int
}

type App struct {
	table string
	last  Order
	seen  map[string]bool
}

var calls int

func price(context.Context, string) (int, error) { calls++; return 20, nil }

// want +5 `assigns: total is assigned in an idem.Atomic and used after this phase: if the phase is committed, a retry skips the function, and total stays empty. Return the value as the result of the phase`

func bad(ctx context.Context, id string) (int, error) {
	var total int
	_, err := idem.Atomic(ctx, "priced", func(ctx context.Context, _ *idem.Tx) (Order, error) {
		total = 20
		return Order{ID: id}, nil
	})
	return total, err
}

func good(ctx context.Context, id string) (int, error) {
	order, err := idem.Atomic(ctx, "priced", func(ctx context.Context, _ *idem.Tx) (Order, error) {
		return Order{ID: id, Total: 20}, nil
	})
	return order.Total, err
}

func alsoBad(ctx context.Context, id string) (order Order, lines []string, err error) {
	charge := ""
	_, err = idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		charge = tx.Key("payments") // want `assigns: charge is assigned in an idem.Foreign and used after this phase`
		return true, nil
	})
	if err != nil {
		return order, nil, err
	}
	counts := map[string]int{}
	_, err = idem.Atomic(ctx, "ordered", func(ctx context.Context, _ *idem.Tx) (bool, error) {
		order.ID = id                // want `assigns: order.ID is assigned`
		lines = append(lines, "one") // want `assigns: lines is assigned`
		counts[id]++                 // want `assigns: counts\[id\] is assigned`
		return true, nil
	})
	_ = charge
	return order, append(lines, charge), errOf(err, counts)
}

func errOf(err error, _ map[string]int) error { return err }

// The function of a Finish may run many times.
func adds(ctx context.Context, items []int) (idem.Response, error) {
	total, last := 0, 0
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) {
		for _, i := range items {
			total += i // want `assigns: the function of an idem.Finish may run many times, and adds to total each time: declare total inside the function`
			last = i
		}
		return idem.Response{Status: 200 + total - total + last - last}, nil
	})
}

func (a *App) field(ctx context.Context) (Order, error) {
	_, err := idem.Atomic(ctx, "ordered", func(context.Context, *idem.Tx) (bool, error) {
		a.last = Order{ID: a.table} // want `assigns: a.last is assigned`
		a.seen["x"] = true          // nothing reads it here
		return true, nil
	})
	return a.last, err
}

// The statement of the phase overwrites err; other is not used after the phase, and
// calls is the package's.
func alsoGood(ctx context.Context, id string) (Order, error) {
	_, err := price(ctx, id)
	if err != nil {
		return Order{}, err
	}
	other := 0
	_ = other
	order, err := idem.Atomic(ctx, "priced", func(ctx context.Context, _ *idem.Tx) (Order, error) {
		var n int
		n, err = price(ctx, id)
		calls++
		other = n
		sum := 0
		for _, x := range []int{1, 2, n} {
			sum += x
		}
		local := Order{ID: id}
		local.Total = sum
		return local, err
	})
	return order, err
}

// Variables outside of the handler are not the handler's data.
func count(handle func(func(context.Context) error)) int {
	runs := 0
	handle(func(ctx context.Context) error {
		_, err := idem.Atomic(ctx, "counted", func(context.Context, *idem.Tx) (bool, error) {
			runs++
			return true, nil
		})
		return err
	})
	done := func() {}
	done()
	return runs
}

func inLiteral(handle func(func(context.Context) (int, error))) {
	handle(func(ctx context.Context) (int, error) {
		n := 0
		_, err := idem.Atomic(ctx, "counted", func(context.Context, *idem.Tx) (bool, error) {
			n = 1 // want `assigns: n is assigned in an idem.Atomic and used after this phase`
			return true, nil
		})
		return n, err
	})
}

type pair struct{ left, right Order }

func more(ctx context.Context, orders []Order) (named int, _ error) {
	var key, last, read int
	var value Order
	var p, q pair
	at := &Order{}
	_, err := idem.Atomic(ctx, "1", func(ctx context.Context, _ *idem.Tx) (bool, error) {
		for key = range orders { // want `assigns: key is assigned`
		}
		for _, value = range orders { // want `assigns: value is assigned`
		}
		for i := range orders {
			_ = i
		}
		for range orders {
		}
		named = 1              // want `assigns: named is assigned`
		last++                 // nothing reads it
		p.left.Total = 1       // want `assigns: p.left.Total is assigned`
		q.left.Total = 1       // another part of q.left is read
		at.Total = 1           // nothing reads it
		(*at).ID, read = "", 1 // want `assigns: \(\*at\).ID is assigned` `assigns: read is assigned`
		return true, nil
	})
	q.left = Order{}
	read += 1
	_, _, _, _, _ = value, key, p.left, q.right, at.ID
	return 0, err
}

func finishes(ctx context.Context) (idem.Response, error) {
	count, other, total, o := 0, 0, 0, Order{}
	return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) {
		count++               // want `assigns: the function of an idem.Finish may run many times, and adds to count`
		total = 1 + total     // want `assigns: .* adds to total`
		o.Total = 1 + o.Total // want `assigns: .* adds to o.Total`
		o.ID = string(rune(o.Total))
		other = total
		for other = range 3 {
		}
		n, m := 1, 2
		n, m = m, n
		n += m
		total = total + 1 // want `assigns: .* adds to total`
		return idem.Response{Status: other}, nil
	})
}
