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
	for _, a := range semantics.Unseen() {
		all = append(all, unbuilt("dynamodb."+a.Name, a.Text, a.Local))
	}
	all = append(all, figures()...)
	all = append(all, contracts()...)
	all = append(all, crashes()...)
	all = append(all, background()...)
	all = append(all, alarms()...)
	all = append(all, roles()...)
	return append(all, missing()...)
}

func unbuilt(name, text, why string) Claim {
	return Claim{Name: name, Text: text, Why: why}
}

// missing are claims without an examination, so that the report has them.
func missing() []Claim {
	return []Claim{
		unbuilt("contract.load-balancer", "a load balancer keeps the contract", "it costs an hour's price and needs a VPC"),
		unbuilt("alarms.others", "each other alarm rings by its trouble, and ends by its remedy", "their troubles last for a quarter of an hour or more, or are those of AWS; tests judge the alarms on the metrics of such troubles"),
	}
}
