package dynamo

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/idem/store"
)

// update is an update expression in the making: what differs between two
// records, and nothing else.
type update struct {
	values
	set    strings.Builder
	remove []string
	names  map[string]string
	args   item
}

// update builds the expression that turns c.Prev into c.Next.
func (s *Store) update(ctx context.Context, c store.Commit) (*update, error) {
	prev, next := c.Prev, c.Next
	u := &update{names: ownerName, args: make(item, 8)}
	u.args[":owner"], u.args[":ver"] = u.str(prev.Owner), u.num(prev.Ver)
	u.set.Grow(192)
	u.put(attrVer, ":ver1", u.num(next.Ver))
	if next.Owner != prev.Owner {
		u.put("#owner", ":owner1", u.str(next.Owner))
	}
	u.text(attrState, ":st", string(prev.State), string(next.State))
	u.text(attrKeep, ":keep", string(prev.Keep), string(next.Keep))
	u.text(attrLastErr, ":last_err", prev.LastErr, next.LastErr)
	u.text(attrFn, ":fn", prev.Handler.Function, next.Handler.Function)
	u.text(attrHandler, ":hn", prev.Handler.Name, next.Handler.Name)
	u.text(attrTenant, ":tn", prev.Tenant, next.Tenant)
	switch {
	case next.Blocked == prev.Blocked:
	case next.Blocked:
		u.put(attrBlocked, ":blocked", yes)
	default:
		u.remove = append(u.remove, attrBlocked)
	}
	u.time(attrExpires, ":exp_s", prev.Expires, next.Expires)
	u.time(attrUntil, ":until_s", prev.Until, next.Until)
	if next.Tombstone != prev.Tombstone {
		u.put(attrTomb, ":tomb_s", u.num(int64(next.Tombstone/time.Second)))
	}
	if !next.Lease.Equal(prev.Lease) {
		u.put(attrLease, ":lease", u.millis(next.Lease)) // 0 and not absent: "released" is a fact
	}
	if !next.Run.Equal(prev.Run) {
		u.put(attrRun, ":run", u.millis(next.Run))
	}
	if next.Tries != prev.Tries {
		u.put(attrTries, ":tries", u.num(int64(next.Tries)))
	}
	if !slices.EqualFunc(prev.Phases, next.Phases, samePhase) {
		u.put(attrPhases, ":phases", u.phases(next.Phases))
	}
	switch {
	case next.Calls == nil && prev.Calls != nil:
		u.remove = append(u.remove, attrCalls)
	case !maps.Equal(prev.Calls, next.Calls):
		u.put(attrCalls, ":calls", u.calls(next.Calls))
	}
	if !slices.Equal(prev.Doubts, next.Doubts) || !prev.DoubtSince.Equal(next.DoubtSince) {
		if len(next.Doubts) == 0 {
			u.remove = append(u.remove, attrDoubts, attrDoubt)
		} else {
			u.put(attrDoubts, ":doubts", u.list(next.Doubts))
			u.put(attrDoubt, ":doubt", u.millis(next.DoubtSince))
		}
	}
	switch {
	case len(next.Sent) == 0 && len(prev.Sent) > 0:
		u.remove = append(u.remove, attrSent)
	case !maps.Equal(prev.Sent, next.Sent):
		u.put(attrSent, ":sent", u.texts(next.Sent))
	}
	if !slices.EqualFunc(prev.Settled, next.Settled, store.Decision.Equal) {
		u.put(attrSettled, ":settled", u.settled(next.Settled))
	}
	u.addJobs(prev.Jobs, next.Jobs)
	if next.Response != nil && prev.Response == nil {
		body, err := s.encodeBody(ctx, &u.values, next)
		if err != nil {
			return nil, err
		}
		u.put(attrResp, ":resp", body)
	}
	if next.Input == nil && (prev.Input != nil || next.Response != nil && prev.Response == nil) {
		u.remove = append(u.remove, attrRequest) // no input at rest after the answer
	}
	return u, nil
}

func samePhase(a, b store.Phase) bool {
	return a.Name == b.Name && a.Intent == b.Intent && string(a.Result) == string(b.Result) && (a.Result == nil) == (b.Result == nil)
}

// addJobs sets single entries, never the map: one that was acknowledged since
// prev was read must not come back.
func (u *update) addJobs(prev, next map[string]store.Job) {
	if len(next) == 0 {
		return
	}
	u.names = maps.Clone(u.names)
	for i, id := range slices.Sorted(maps.Keys(next)) {
		if _, known := prev[id]; known {
			continue
		}
		n := strconv.Itoa(i)
		u.names["#j"+n] = id
		u.put(attrJobs+".#j"+n, ":j"+n, u.job(next[id]))
	}
}

func (u *update) put(path, placeholder string, v value) {
	if u.set.Len() == 0 {
		u.set.WriteString("SET ")
	} else {
		u.set.WriteString(", ")
	}
	u.set.WriteString(path)
	u.set.WriteString(" = ")
	u.set.WriteString(placeholder)
	u.args[placeholder] = v
}

func (u *update) text(name, placeholder, prev, next string) {
	switch next {
	case prev:
	case "":
		u.remove = append(u.remove, name)
	default:
		u.put(name, placeholder, u.str(next))
	}
}

func (u *update) time(name, placeholder string, prev, next time.Time) {
	switch {
	case next.Equal(prev):
	case next.IsZero():
		u.remove = append(u.remove, name)
	default:
		u.put(name, placeholder, u.secs(next))
	}
}

func (u *update) expression() string {
	for i, name := range u.remove {
		if i == 0 {
			u.set.WriteString(" REMOVE ")
		} else {
			u.set.WriteString(", ")
		}
		u.set.WriteString(name)
	}
	u.remove = nil
	return u.set.String()
}
