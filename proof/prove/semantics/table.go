package semantics

// All are the assumptions, in the order in which they are examined.
func All() []Assumption {
	return []Assumption{
		{
			Name: "refused-put-has-item", Text: "a Put that its condition refuses returns the item in its way, whole",
			Code: []string{"dynamo.Store.sendPut", "dynamo.Store.Claim"}, Writes: 10, examine: refusedPut,
		},
		{
			Name: "refused-update-has-item", Text: "an Update that its condition refuses returns the item, and none if there is none; it makes none",
			Code: []string{"dynamo.Store.sendUpdate", "dynamo.holderCondition"}, Writes: 20, Reads: 2, examine: refusedUpdate,
		},
		{
			Name: "one-winner", Text: "of Puts at once that ask for no item, one is made",
			Code: []string{"dynamo.claimCondition"}, Figure: "# races of #", Writes: 400, examine: oneWinner,
		},
		{
			Name: "absent-compares-false", Text: "a comparison with an attribute that isn't there is false, and its NOT is true",
			Code: []string{"dynamo.claimCondition", "dynamo.seenCondition"}, Writes: 30, examine: absentCompares,
		},
		{
			Name: "paths-of-maps", Text: "attribute_exists and attribute_not_exists hold for paths in maps, also of a map that isn't there",
			Code: []string{"dynamo.takeCondition", "dynamo.takeSealed"}, Writes: 30, examine: pathsOfMaps,
		},
		{
			Name: "size-counts-entries", Text: "size of a map or list is the number of its entries",
			Code: []string{"dynamo.droppedCondition", "internal/background/stream.lastCondition"}, Writes: 20, examine: sizeCounts,
		},
		{
			Name: "update-reads-before-it-writes", Text: "the expressions of an Update read the item as it was before, whatever their order",
			Code: []string{"dynamo.takeSet"}, Writes: 10, examine: updateReadsBefore,
		},
		{
			Name: "entries-apart", Text: "setting and removing entries of a map leaves its others, and fails without the map",
			Code: []string{"internal/background/stream.ackCondition", "dynamo.update.addJobs"}, Writes: 20, examine: entriesApart,
		},
		{
			Name: "consistent-reads", Text: "a consistent read sees the last write",
			Code: []string{"dynamo.Store.Load"}, Figure: "# reads", Writes: 150, Reads: 60, examine: consistentReads,
		},
		{
			Name: "transaction-all-or-none", Text: "a cancelled transaction writes nothing; a transaction's writes are all there when it has answered",
			Code: []string{"dynamo.Store.transact"}, Writes: 60, Reads: 6, examine: allOrNone,
		},
		{
			Name: "cancelled-has-items", Text: "a cancelled transaction has a reason for each part, in their order: None for the innocent, and the item for a condition",
			Code: []string{"dynamo.why"}, Writes: 40, examine: cancelledHasItems,
		},
		{
			Name: "token-repeats", Text: "a transaction with the token of an earlier one, and its content, is made once",
			Code: []string{"dynamo.Store.transact"}, Writes: 30, Reads: 6, examine: tokenRepeats,
		},
		{
			Name: "token-of-another", Text: "a token with another content is refused",
			Code: []string{"dynamo.Store.transact"}, Writes: 30, examine: tokenOfAnother,
		},
		{
			Name: "conflicts", Text: "writes of one item at once conflict: of transactions by the reason TransactionConflict, of single writes by TransactionConflictException; none is lost",
			Code:  []string{"internal/item.outcomes"},
			Local: "no write conflicts: all are made one after the other", Figure: "# transactions and # writes of # met one", Writes: 2500, Reads: 20, examine: conflicts,
		},
		{
			Name: "hundred-items", Text: "a transaction takes 100 items, not 101, and no item twice",
			Code: []string{"dynamo.maxItems", "dynamo.joined"}, Writes: 1500, examine: hundredItems,
		},
		{
			Name: "item-size", Text: "an item has at most 400 KB, with the names of its attributes",
			Code: []string{"dynamo.maxItem", "dynamo.Store.pack"}, Writes: 1000, examine: itemSize,
		},
		{
			Name: "transaction-size", Text: "a transaction has at most 4 MB",
			Code: []string{"dynamo.maxTransaction", "dynamo.checkSize"}, Writes: 9000, examine: transactionSize,
		},
		{
			Name: "units-of-writes", Text: "a write takes a unit for each KB of the item, begun ones too",
			Code: []string{"dynamo.units"}, Writes: 20, examine: unitsOfWrites,
		},
		{
			Name: "units-of-transactions", Text: "a transaction takes twice the units of its writes",
			Code: []string{"dynamo.call.sent"}, Local: "it counts the units of one item of a table only",
			Writes: 30, examine: unitsOfTransactions,
		},
		{
			Name: "sparse-index", Text: "an item is in the index while it has the index's key, and only then",
			Code: []string{"dynamo.update.wait", "dynamo.CreateTableInput"}, Figure: "there after # ms", Writes: 20, Reads: 240, examine: sparseIndex,
		},
		{
			Name: "stream-order", Text: "the stream has each change of an item once, in its order, with both images",
			Code: []string{"internal/background/stream.readChange", "internal/background/stream.netted"}, Figure: "# changes", Writes: 150, examine: streamOrder,
		},
		{
			Name: "stream-of-changes-only", Text: "the stream has all of a transaction, nothing of a cancelled one, and nothing of a write that changes nothing",
			Code: []string{"internal/background/stream.readChange"}, Writes: 80, examine: streamOfChanges,
		},
	}
}
