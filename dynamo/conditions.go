package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

const (
	// claimCondition allows a claim if there is no record, or an expired one:
	//   - attribute_not_exists: of two concurrent claims, one wins;
	//   - exp_s < :now: TTL deletes late, so an expired record may still exist. If the record has
	//     no exp_s, the condition is false: a claim never replaces a record that must be kept;
	//   - NOT keep = :freed: an operation may have been freed since this claim was sent. A late
	//     copy of the claim must not revive that operation.
	claimCondition = "attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"

	// absentCondition is the condition on the key's other record while the scope of keys changes.
	// It is sent in one transaction with a claim that has found no other record. If two claims run
	// concurrently, one under each scope, only one of them wins.
	absentCondition = "attribute_not_exists(pk)"

	// seenCondition lets a claim replace a freed record that the claimer has read, if the record is
	// unchanged. While the scope of keys changes, the claim's transaction has this condition also
	// on the key's other record, which the claimer has fenced. The condition has two parts:
	//   - attribute_not_exists: only one of two concurrent claims wins, even if they have different
	//     scopes;
	//   - owner and ver: the condition is false if another claim was faster, or if a late write
	//     was applied. A late copy of this claim finds another owner and version.
	seenCondition = "attribute_not_exists(pk) OR (#owner = :owner AND ver = :ver)"

	// holderCondition is part of every write after the claim. It refuses a write by an attempt that
	// lost its lease, and a late copy of a write that was applied. Every write of a holder raises
	// ver, so if ver is the same, the lease is the same too.
	holderCondition = "#owner = :owner AND ver = :ver"

	// droppedCondition is added to the write that removes all jobs of a record and reports them as
	// lost. If a drain acknowledges a job at the same time, the write is refused, so that the job
	// isn't reported as lost. holderCondition ensures that the writer has read all jobs of the
	// record. The condition of [item.HoldJobs] is appended: it refuses the write if a job is
	// redriven and delivered at the same time.
	droppedCondition = " AND size(jobs) = :jobs"

	// takeCondition must be true for a take-over by a ticket, since the taker has not read the
	// record. takeReleased or takeAbandoned follows, then the conditions on fn, hn and tn.
	//   - v: a program must not take over a record that it can't read;
	//   - st: a late ticket must not reopen an ended or stuck operation;
	//   - req: an operation without its request can't be completed;
	//   - no exp_s: a key that will expire must not be held beyond its expiry;
	//   - no req.o: a request in companions may be missing, so it must be read before the
	//     take-over;
	//   - fn, hn, tn: if a wrong handler took over, its answer would be stored for good.
	takeCondition = holderCondition + " AND v = :v AND st = :open AND attribute_exists(req) AND attribute_not_exists(req.o) AND attribute_not_exists(exp_s)"
	// takeSealed is added if the program encrypts: the request must be sealed (req.x), since an
	// attempt needs a data key to store results. If the request isn't sealed, the taker would have
	// to make or open a data key and write it, which Take can't do.
	takeSealed = " AND attribute_exists(req.x)"
	// takeReleased: the holder released the record, and has recorded which calls are in doubt.
	takeReleased = " AND lease_ms = :zero"
	// takeAbandoned: the holder may be alive until the lease is over. A record with a mark is
	// refused: the holder may have begun a call, and Take can't record that this call is in doubt.
	takeAbandoned = " AND lease_ms > :zero AND lease_ms <= :now AND attribute_not_exists(mark)"

	takeSet = "SET #owner = :owner1, ver = :ver1, lease_ms = :lease, run_ms = :now, tries = if_not_exists(tries, :zero) + :one"
	// takeHands records who took the record over, and when.
	takeHands = ", hands = list_append(if_not_exists(hands, :none), :hand)"

	// untakeSet is the update that undoes a take-over. Its condition is holderCondition.
	untakeSet = "SET ver = :ver1, lease_ms = :zero, tries = tries - :one"
)

// All calls use pointers to these values, which is safe because the values never change.
var (
	claimIf   = claimCondition
	absentIf  = absentCondition
	seenIf    = seenCondition
	ownerName = map[string]string{"#owner": item.AttrOwner}
	freed     = &types.AttributeValueMemberS{Value: string(store.KeepFreed)}
)
