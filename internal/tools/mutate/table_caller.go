package main

// callerMutants break how callers are told apart.
func callerMutants() []mutant {
	const scope, adapter = "idem/scope.go", "lambda/adapter.go"
	return []mutant{
		{
			rule: "TenantScope", what: "two tenants share the keys of nobody in particular",
			file: scope, old: "\treturn tenantScope(r, \"\"), nil\n", new: "\treturn \"\", nil\n", pkg: "lambda", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "two tenants share the keys of a verified caller",
			file: scope, old: "return tenantScope(r, r.Identity.Kind+\":\"+r.Identity.Subject), nil", new: "return r.Identity.Kind + \":\" + r.Identity.Subject, nil",
			pkg: "lambda", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "the tenant of an invocation doesn't reach the engine",
			file: adapter, old: "\tif req.Tenant == \"\" {\n\t\treq.Tenant = tenantOf(ctx)\n\t}\n", new: "", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "a direct invocation has no tenant",
			file: "lambda/direct.go", old: "\t\tscope = join(tenant, scope)\n", new: "\t\t_ = join(tenant, scope)\n", run: "^TestTenantsOfDirectInvocations$",
		},
		{
			rule: "TenantName", what: "a tenant's name may hold what ends it",
			file: scope, old: "escapeTenant.Replace(r.Tenant)", new: "r.Tenant", pkg: "lambda", run: "^TestTenantsNamesDontRunTogether$",
		},
	}
}
