package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

const (
	// claimCondition lets a claim write if there is no record, or an expired one:
	//   - attribute_not_exists: two claims at once, one wins;
	//   - exp_s < :now: TTL deletes late, so an expired record may still exist; false
	//     without exp_s, so a record to be kept is never replaced by a claim;
	//   - NOT keep = :freed: a late copy of any claim must not revive its operation, which
	//     was freed since.
	claimCondition = "attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"

	// absentCondition is on the key's other record while the scope of keys changes, in one
	// transaction with a claim that has seen none there: two claims at once, one under
	// each scope, one wins.
	absentCondition = "attribute_not_exists(pk)"

	// seenCondition lets a claim write if nothing has changed since the claimer has seen
	// a freed record in its way; and, in one transaction with the claim while the scope
	// of keys changes, since it has fenced the key's other record:
	//   - attribute_not_exists: two claims at once, also one under each scope, one wins;
	//   - owner and ver: another claim was faster, or a late write has landed; a late
	//     copy of this claim finds another owner and version.
	seenCondition = "attribute_not_exists(pk) OR (#owner = :owner AND ver = :ver)"

	// holderCondition is on every later write: a worker that lost its lease, or a
	// late copy of its own earlier write, changes nothing. Every holder's write
	// raises ver, so an equal ver proves an unchanged lease.
	holderCondition = "#owner = :owner AND ver = :ver"

	// droppedCondition is added by the write that removes all jobs of a record: a drain
	// may acknowledge one meanwhile, which then is not lost. Under holderCondition the
	// record has no job that was not read. [item.HoldJobs] follows: a job that is
	// redriven meanwhile goes out.
	droppedCondition = " AND size(jobs) = :jobs"

	// takeCondition is on a take-over by a ticket, which knows nothing else of the
	// record. The conditions takeReleased or takeAbandoned, and those on fn, hn and
	// tn, follow.
	//   - v: a program must not take over a record that it can't read;
	//   - st: a late ticket must not open an ended or stuck operation;
	//   - req, and no exp_s: an operation without its request can't be completed, and a
	//     key that is to become free again must not be held beyond that;
	//   - no req.o: a request in other items may be missing, and is read first;
	//   - fn, hn, tn: another handler would answer for it, and its answer would stay.
	takeCondition = holderCondition + " AND v = :v AND st = :open AND attribute_exists(req) AND attribute_not_exists(req.o) AND attribute_not_exists(exp_s)"
	// takeSealed is added by a program that encrypts. req.x: the data key of a request
	// that isn't sealed is made, or opened, and written with the take-over, which Take
	// can't do; an attempt without it could not store its results.
	takeSealed = " AND attribute_exists(req.x)"
	// takeReleased: the holder has recorded which calls are in doubt.
	takeReleased = " AND lease_ms = :zero"
	// takeAbandoned: the holder may be alive until its lease is over; and a call that it
	// may have begun becomes a doubt, beside those that are recorded already.
	takeAbandoned = " AND lease_ms > :zero AND lease_ms <= :now AND attribute_not_exists(mark)"

	takeSet = "SET #owner = :owner1, ver = :ver1, lease_ms = :lease, run_ms = :now, tries = if_not_exists(tries, :zero) + :one"
	// takeHands: a person sees later who took the record over, and when.
	takeHands = ", hands = list_append(if_not_exists(hands, :none), :hand)"

	// untakeSet undoes a take-over on holderCondition.
	untakeSet = "SET ver = :ver1, lease_ms = :zero, tries = tries - :one"
)

// Values that every request points to; never changed.
var (
	claimIf   = claimCondition
	absentIf  = absentCondition
	seenIf    = seenCondition
	ownerName = map[string]string{"#owner": item.AttrOwner}
	freed     = &types.AttributeValueMemberS{Value: string(store.KeepFreed)}
)
