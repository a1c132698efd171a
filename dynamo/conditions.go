package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

const (
	// claimCondition allows a claim if there is no record, or an expired one:
	//   - attribute_not_exists: of two concurrent claims, one wins;
	//   - exp_s < :now: an expired record may still exist, because TTL deletes late.
	//     The condition is false for a record without exp_s, which must be kept;
	//   - NOT keep = :freed: if the key was freed after this claim had been applied, a
	//     late copy of the claim must not write its record again.
	claimCondition = "attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"

	// absentCondition is the condition on a key's other place, if the claimer has found
	// no record there. It is checked in one transaction with the claim. So if two
	// claims run concurrently, one under each scope, only one of them wins.
	absentCondition = "attribute_not_exists(pk)"

	// seenCondition lets a claim replace the freed record that the claimer has read, if
	// the record is unchanged. If the claimer has fenced a record at the key's other
	// place, the claim's transaction also checks seenCondition on the fenced record.
	// The condition has two parts:
	//   - attribute_not_exists: if the record is gone, only one of two concurrent
	//     claims wins, even if they have different scopes;
	//   - owner and ver: the claim is refused if another claim was faster, or if a late
	//     write was applied. A late copy of this claim is refused too, because the
	//     claim itself has changed owner and version.
	seenCondition = "attribute_not_exists(pk) OR (#owner = :owner AND ver = :ver)"

	// holderCondition is part of the condition of every Commit and Take. It refuses a
	// write by an attempt that lost its lease. It also refuses a late copy of a write
	// that was applied, because every write of a holder raises ver.
	holderCondition = "#owner = :owner AND ver = :ver"

	// droppedCondition is added to the write that frees a key and removes all jobs of
	// the record. The removed jobs are reported as lost, so the write must be refused
	// if a drain has delivered one of them:
	//   - droppedCondition is false if a drain has acknowledged a job since the record
	//     was read;
	//   - holderCondition is false if a job was added since then;
	//   - the condition of [item.HoldJobs], which is appended, is false if a parked job
	//     was redriven since then, because a drain may have delivered this job.
	droppedCondition = " AND size(jobs) = :jobs"

	// takeCondition is the condition of a take-over by a ticket. The taker has not read
	// the record, so takeCondition must exclude each record that the taker must not
	// take over. takeReleased or takeAbandoned follows, then the conditions on fn, hn
	// and tn.
	//   - v: a program must not take over a record that it can't read;
	//   - st: a late ticket must not reopen an ended or stuck operation;
	//   - req: an operation without its request can't be completed;
	//   - no exp_s: a key that will expire must not be held beyond its expiry;
	//   - no req.o: the request is in companions, which may be missing, so a taker must
	//     read them before the take-over;
	//   - fn, hn, tn: only the record's own handler may take over, because the answer
	//     of a wrong handler would be stored for good.
	takeCondition = holderCondition + " AND v = :v AND st = :open AND attribute_exists(req) AND attribute_not_exists(req.o) AND attribute_not_exists(exp_s)"
	// takeSealed is added if the program encrypts. An attempt needs a data key to store
	// results, and a sealed request (req.x) brings one. If the request isn't sealed,
	// the taker would have to make or open a data key and write it, which Take can't
	// do.
	takeSealed = " AND attribute_exists(req.x)"
	// takeReleased is true if the holder released the record. A mark does no harm then,
	// because a release records which calls are in doubt.
	takeReleased = " AND lease_ms = :zero"
	// takeAbandoned is true if the lease is over and the record has no mark. Until the
	// lease is over, the holder may be alive. A mark means that the holder may have
	// begun a call, and Take can't record that this call is in doubt.
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
