package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samekey/samekey/proof/model"
)

// exception is a rule without a condition in the code that could be removed.
type exception struct{ rule, why string }

var exceptions = []exception{
	{"Neighbours", "who deploys keeps it: a program doesn't see which others run beside it"},
	{"OtherOver", "who deploys keeps it: a program that knows one scope doesn't see the other's records"},
	{"ClientRequestToken", "the SDK makes it, one for each call; nothing rests on it: owner and ver do the work"},
	{"recent", "a drain's memory of what it delivered saves deliveries; the job's id does the work"},
	{"leftover, at the finish", "asked before it, by the phase or by the engine; this is a second look at the same"},
}

// covers reports rules of the model (package proof/model) that nobody breaks here. Each
// must be a line of the table, or an exception.
func covers(ms []mutant) error {
	var errs []error
	for _, rule := range model.RuleNames() {
		broken := slices.ContainsFunc(ms, func(m mutant) bool { return m.rule == rule })
		excepted := slices.ContainsFunc(exceptions, func(e exception) bool { return e.rule == rule })
		if broken == excepted {
			errs = append(errs, fmt.Errorf("%s: want it in the table or among the exceptions, and not in both", rule))
		}
	}
	return errors.Join(errs...)
}
