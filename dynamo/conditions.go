package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

const (
	// claimCondition lets a claim write if there is no record, or an expired one:
	//   - attribute_not_exists: of two concurrent claims, one wins;
	//   - exp_s < :now: TTL deletes late, so an expired record may still exist. The condition
	//     is false without exp_s, so a claim never replaces a record that must be kept;
	//   - NOT keep = :freed: a late copy of a claim must not revive an operation that was freed
	//     since.
	claimCondition = "attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"

	// absentCondition is on the key's other record while the scope of keys changes, in one
	// transaction with a claim that has seen no other record. Of two concurrent claims, one
	// under each scope, one wins.
	absentCondition = "attribute_not_exists(pk)"

	// seenCondition lets a claim replace a freed record that the claimer has seen, if the
	// record is unchanged. While the scope of keys changes, seenCondition is also on the key's
	// other record, which the claimer has fenced, in one transaction with the claim:
	//   - attribute_not_exists: of two concurrent claims, also one under each scope, one wins;
	//   - owner and ver: another claim was faster, or a late write has landed; a late
	//     copy of this claim finds another owner and version.
	seenCondition = "attribute_not_exists(pk) OR (#owner = :owner AND ver = :ver)"

	// holderCondition is on every later write: a worker that lost its lease, or a
	// late copy of its own earlier write, changes nothing. Every holder's write
	// raises ver, so an equal ver proves an unchanged lease.
	holderCondition = "#owner = :owner AND ver = :ver"

	// droppedCondition is added by the write that removes all jobs of a record. If a drain
	// acknowledges a job meanwhile, the write is refused, and doesn't report that job as lost.
	// Under holderCondition the record has no job that the writer has not read. [item.HoldJobs]
	// follows, for a job that is redriven meanwhile and delivered.
	droppedCondition = " AND size(jobs) = :jobs"

	// takeCondition is on a take-over by a ticket: the taker has not read the record.
	// takeReleased or takeAbandoned follows, then the conditions on fn, hn and tn.
	//   - v: a program must not take over a record that it can't read;
	//   - st: a late ticket must not open an ended or stuck operation;
	//   - req, and no exp_s: an operation without its request can't be completed. A key that
	//     will expire must not be held beyond its expiry;
	//   - no req.o: a request in other items may be missing, so it is read before the
	//     take-over;
	//   - fn, hn, tn: the answer of a wrong handler would stay.
	takeCondition = holderCondition + " AND v = :v AND st = :open AND attribute_exists(req) AND attribute_not_exists(req.o) AND attribute_not_exists(exp_s)"
	// takeSealed is added by a program that encrypts. req.x: an attempt needs a data key to
	// store its results. If the request isn't sealed, the take-over must make or open the data
	// key and write it, which Take can't do.
	takeSealed = " AND attribute_exists(req.x)"
	// takeReleased: the holder has recorded which calls are in doubt.
	takeReleased = " AND lease_ms = :zero"
	// takeAbandoned: the holder may be alive until its lease is over. A call that the holder
	// may have begun becomes a doubt, in addition to the recorded doubts.
	takeAbandoned = " AND lease_ms > :zero AND lease_ms <= :now AND attribute_not_exists(mark)"

	takeSet = "SET #owner = :owner1, ver = :ver1, lease_ms = :lease, run_ms = :now, tries = if_not_exists(tries, :zero) + :one"
	// takeHands records who took the record over, and when, for people.
	takeHands = ", hands = list_append(if_not_exists(hands, :none), :hand)"

	// untakeSet undoes a take-over, under holderCondition.
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
