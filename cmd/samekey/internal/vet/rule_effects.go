package vet

var effects = newRule("effects", "find effects between the phases of a handler, and in an Atomic", checkEffects)

// checkEffects finds effects that a retry repeats. It finds them outside the phases of a
// handler, and in the functions of Atomic and Finish, because these functions may run
// many times.
func checkEffects(c *code) (all []finding) {
	for _, u := range c.units {
		for _, e := range u.calls {
			eff, via := c.effectOfEvent(e)
			if eff == nil || !c.onAPathWithPhases(u, e) {
				continue
			}
			all = append(all, found(e.call, "%s%s runs outside the phases, so every retry runs it again: "+
				"call it in an idem.Foreign with tx.Key, write to DynamoDB by tx.Write in an idem.Atomic, or stage a job", via, eff.what))
		}
	}
	for _, p := range c.phases {
		if p.body == nil || p.kind == foreign {
			continue
		}
		for _, e := range c.events(p.body) {
			if eff, via := c.effectOfEvent(e); eff != nil {
				all = append(all, found(e.call, "%s%s runs in an idem.%s, which may run many times and doesn't commit this effect: "+
					"call it in an idem.Foreign with tx.Key, write to DynamoDB by tx.Write, or stage a job", via, eff.what, p.kind))
			}
		}
	}
	return all
}

// effectOfEvent returns the effect of a call. If the called function belongs to this
// package, eff is the function's effect, and via names the function. If the function runs
// phases, eff is nil, because checkEffects looks at the function separately.
func (c *code) effectOfEvent(e event) (eff *effect, via string) {
	switch {
	case e.effect != nil:
		return e.effect, ""
	case e.callee != nil && !c.hasPhases(e.callee):
		return c.effectIn(e.callee), c.nameOf(e.callee) + " calls "
	}
	return nil, ""
}

// onAPathWithPhases reports whether a run of u may make the call e and also run a phase.
func (c *code) onAPathWithPhases(u *unit, e event) bool {
	for _, p := range u.calls {
		if !c.runsPhase(p) {
			continue
		}
		if g := c.graphOf(u); g.before(p.call.Pos(), e.call.Pos()) || g.before(e.call.Pos(), p.call.Pos()) {
			return true
		}
	}
	return false
}
