package main

// tenantMutants break what keeps tenants apart. Random requests find them.
func tenantMutants() []mutant {
	const pkg, fuzz = "proof/tenants", "^TestTenantsInMemory$"
	return []mutant{
		{
			rule: "TenantFuzz", what: "the scope is no part of the record's key",
			in: "idem.naming.partitionKey", where: "$b, $scope []byte, $r *Request", old: "appendPart(make([]byte, 0, 256), $scope)", new: "make([]byte, 0, 256)", pkg: pkg, run: fuzz,
		},
		{
			rule: "TenantFuzz", what: "scope and key run together",
			in: "idem.appendPart", old: "$buf = binary.BigEndian.AppendUint64($buf, uint64(len($part)))", new: "$buf = append($buf, binary.BigEndian.AppendUint64(nil, 0)[8:]...)", pkg: pkg, run: "^TestTenantsInMemory$",
		},
		{
			rule: "TenantFuzz", what: "the cache doesn't look at the record's key",
			in: "idem.cache.get", old: "$el := $c.byKey[string($pk)]", new: "$el := $c.order.Front()", pkg: pkg, run: fuzz,
		},
		{
			rule: "TenantFuzz", what: "a completer of one tenant resumes another tenant's operation",
			in: "internal/state.MayTake", old: "case $rec.Tenant != $t.Tenant: return OtherTenant", new: "", pkg: "idem", run: "^TestTicketOfAnotherHandlerIsRefused$",
		},
		{
			rule: "TenantFuzz", what: "a ticket needs no owner",
			in: "internal/state.Fits", old: "$rec.Owner != $owner ||", new: `$owner == "" ||`, pkg: "idem", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TenantFuzz", what: "the fingerprint isn't compared",
			in: "idem.subject.compare", old: "case $a.resumed:", new: "case $a.resumed || !$a.resumed:", pkg: pkg, run: fuzz,
		},
		{
			rule: "TenantFuzz", what: "an issuer's name may hold what ends it",
			in: "lambda.jwtIdentity", old: "join($iss, $sub)", new: `$iss + "|" + $sub`, pkg: "lambda", run: "^TestHTTPAPIIdentity$",
		},
		{
			rule: "TenantInContext", what: "an operation that no adapter makes is of no tenant",
			in: "idem.Engine.Do", old: `$r.Tenant == ""`, new: "$r.Tenant == \"none\"", pkg: "lambda", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "ForgedHeaders", what: "a record that somebody has edited sets a cookie",
			in: "idem.replayable", old: "forget($r.Header)", new: "", pkg: "dynamo", run: "^TestForgedHeadersAreNotReplayed$",
		},
		{
			rule: "ResumedCaller", what: "a request is run again without its caller",
			in: "lambda.Handler.again", old: "$made.Identity != $req.Identity", new: `$made.Identity.Kind == "x"`, run: "^TestResumeLosesNoCaller$",
		},
	}
}
