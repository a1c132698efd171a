package main

import (
	"context"

	"github.com/samekey/samekey/proof/prove/semantics"
)

// Claims are all claims, in the order in which they are examined.
func Claims() []Claim {
	all := probes()
	for _, a := range semantics.All() {
		all = append(all, Claim{
			Name: "dynamodb." + a.Name, Text: a.Text, Page: "docs/operate/prove.md", Figure: a.Figure, Cost: Cost{Writes: a.Writes, Reads: a.Reads + 1000},
			OnStandIn: a.Local, Differs: a.Local != "",
			Examine: func(ctx context.Context, p *Place) (string, error) {
				figure, err := a.Examine(ctx, semantics.Place{DB: p.DB, Streams: p.Streams, Table: p.Semantics})
				if !semantics.IsDifference(err) {
					err = notSeen(plainError(err))
				}
				return figure, err
			},
		})
	}
	all = append(all, contracts()...)
	all = append(all, crashes()...)
	all = append(all, background()...)
	all = append(all, alarms()...)
	all = append(all, roles()...)
	return all
}
