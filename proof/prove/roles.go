package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/samekey/samekey/proof/prove/fault"
)

const rolesPage = "docs/operate/deploying.md"

// expected is denied by the shipped roles, and the store goes on without: it is a right to delete.
const expected = "DynamoDB_20120810.BatchWriteItem"

func roles() []Claim {
	const unchecked = "a stand-in doesn't check permissions"
	return []Claim{
		{
			Name: "roles.outside", Text: "a call that isn't in its function's role is denied", Page: rolesPage, Figure: "# roles",
			Cost: Cost{Bookings: 3 * (tries + 1), Writes: 4, Reads: 3 * waiting}, OnStandIn: unchecked, Examine: examineOutside,
		},
		{
			Name: "roles.enough", Text: "no call of the API's function, the worker and the consumer to DynamoDB, SQS and Lambda is denied", Page: rolesPage, Figure: "# rides, 0 denied calls",
			Cost: Cost{Reads: 3 * 128}, OnStandIn: unchecked, Examine: examineDenied,
		},
	}
}

// examineOutside has each function delete a record, which none of their roles allows.
func examineOutside(ctx context.Context, p *Place) (string, error) {
	var allowed, unmet []string
	all := []string{"api", "worker", "receipts"}
	for i, role := range all {
		f := fault.Fault{Kind: fault.Outside, Call: 1, Cell: role}
		var err error
		if role == "api" {
			b := newBooking("outside", 910)
			b.fault = f
			_, err = p.insist(ctx, b)
		} else {
			_, err = p.behind(ctx, role, f, 910+i)
		}
		if dark(err) {
			return "", notSeen(err)
		}
		wasAllowed := fault.Fault{Kind: f.Kind, Call: f.Call, Cell: f.Cell + "-allowed"}
		w, _, err := p.arrive(ctx, p.patience(), func(w world) bool { return met(f)(w) || met(wasAllowed)(w) })
		switch {
		case err != nil:
			return "", notSeen(err)
		case met(wasAllowed)(w):
			allowed = append(allowed, role)
		case !met(f)(w):
			unmet = append(unmet, role)
		}
	}
	switch {
	case len(allowed) > 0:
		return "", fmt.Errorf("not to %s", strings.Join(allowed, ", "))
	case len(unmet) > 0:
		return "", notSeen(fmt.Errorf("these made no call: %s", strings.Join(unmet, ", ")))
	}
	return fmt.Sprintf("%d roles", len(all)), nil
}

// examineDenied looks for calls that were denied while all other claims were examined.
func examineDenied(ctx context.Context, p *Place) (string, error) {
	w, err := p.look(ctx)
	if err != nil {
		return "", notSeen(err)
	}
	var denied []string
	for _, x := range w.provider {
		if call, ok := strings.CutPrefix(text(x["id"]), fault.Denied); ok && !strings.HasSuffix(call, expected) {
			denied = append(denied, call)
		}
	}
	slices.Sort(denied)
	switch {
	case len(denied) > 0:
		return "", errors.New("denied: " + strings.Join(denied, ", "))
	case len(w.rides) == 0:
		return "", notSeen(errors.New("nothing was done"))
	}
	return fmt.Sprintf("%d rides, 0 denied calls", len(w.rides)), nil
}
