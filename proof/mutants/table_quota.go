package main

// rotationMutants break the rotation of the fingerprint's secret.
func rotationMutants() []mutant {
	return []mutant{
		{
			rule: "BucketAhead", what: "a clock that is ahead starves the others",
			in: "dynamo.Buckets.Lease", old: "max($now, $at)", new: "min($now, $at)", run: "^TestClockAheadStarvesNobody$",
		},
		{
			rule: "BucketAhead", what: "a clock that is behind sets the bucket's time back, and tokens come in twice",
			in: "dynamo.atCondition", old: `"…at_us <= :now…"`, new: `"…at_us <> :now…"`, run: "^TestClockAheadStarvesNobody$",
		},
		{
			rule: "Incomparable", what: "an unknown scheme is a mismatch",
			in: "idem.Fingerprint.matches", old: `return false, fmt.Errorf("%w: the scheme %q is unknown", ErrIncomparable, $scheme)`, new: `return false, nil`,
			pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/engine_fingerprint/a_deploy_that_changes",
		},
		{
			rule: "OwnScheme", what: "a retry is compared by this program's scheme",
			in: "idem.subject.compare", old: "$held.Secret == $a.secret && $held.Scheme == $a.scheme", new: "$held.Secret == $a.secret",
			pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/engine_fingerprint/a_deploy_that_changes",
		},
		{
			rule: "Rotation", what: "an expired record is compared",
			in: "idem.attempt.judge", old: "&& !$a.over($held)", new: "", run: "^TestExpiredRecordNeedsNoSecret$",
		},
	}
}

// quotaMutants break the quota of new operations.
func quotaMutants() []mutant {
	const engine = "internal/testkit/enginetest"
	const known = "^TestMemoryStore$/engine_quota"
	return []mutant{
		{
			rule: "QuotaKnown", what: "over the quota, a known key is refused",
			in: "idem.before.known", old: "if $err == nil && $v == state.Again {", new: "if true {", pkg: engine, run: known,
		},
		{
			rule: "QuotaKnown", what: "over the quota, a new key is claimed",
			in: "idem.before.known", old: "if $err == nil && $v == state.Again { return nil, 0, $refusal }", new: "", pkg: engine, run: known,
		},
		{
			rule: "QuotaKnown", what: "a known key keeps its place",
			in: "idem.place.settle", old: "default: $p.leave()", new: "default: $p.use.New = true", pkg: engine, run: known,
		},
		{
			rule: "QuotaPlace", what: "an operation within an operation needs a place",
			in: "idem.before.enters", old: "$a.opt.Quota != nil && !nested($ctx)", new: "$a.opt.Quota != nil", pkg: engine, run: known,
		},
		{
			rule: "QuotaPlace", what: "a place is given up twice",
			in: "idem.place.leave", old: "$p.end = nil", new: "", run: "^TestQuotaPlaceIsGivenUpOnce$",
		},
		{
			rule: "QuotaPlace", what: "a failed claim takes a place",
			in: "idem.place.settle", where: "func ($p *place)", old: "case $err != nil || $v == state.Again:", new: "case $err != nil || $v == state.Again: $p.use.New = true", run: "^TestQuotaPlaceOfAFailedClaim$",
		},
		{
			rule: "QuotaBucket", what: "two processes find a full bucket, and both take the first lot",
			in: "dynamo.fullCondition", old: `"(attribute_not_exists(pk) OR full_us <= :now)"`, new: `"(attribute_not_exists(pk) OR full_us <> :now)"`, run: "^TestSharedBucketAtOnce$",
		},
		{
			rule: "QuotaBucket", what: "two lots at once take more than the bucket holds",
			in: "dynamo.usedCondition", old: `"full_us BETWEEN :now AND :most"`, new: `"full_us >= :now AND full_us <> :most"`, run: "^TestSharedBucketAtOnce$",
		},
		{
			rule: "QuotaBucket", what: "a wrong clock shuts everybody out",
			in: "dynamo.Buckets.Lease", old: "$late <= ($l.Fill + maxSkew).Microseconds()", new: "$late != 0", run: "^TestSharedBucketsAndClocks$",
		},
		{
			rule: "Bounded", what: "a map of names of strangers forgets nothing",
			in: "internal/base/lru.Map.Put", old: "$m.recent.Len() > $m.most", new: "false", run: "^TestMapForgetsWhatWasUsedLeastRecently$",
		},
	}
}
