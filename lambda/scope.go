package lambda

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
)

// Identities hold only facts that AWS has verified, never headers. A caller has the
// same kind and subject in each kind of event. A Kind without a Subject is a caller
// that was authorized but not named.

// jwtIdentity returns the identity of a token. A subject is unique only within its
// issuer (RFC 7519, 4.1.2).
func jwtIdentity(iss, sub string) idem.Identity {
	id := idem.Identity{Kind: "jwt"}
	if sub != "" {
		id.Subject = join(iss, sub)
	}
	return id
}

// poolSession is the session name of every user of an identity pool. In an event
// without the user, such as a function URL's, it names no caller.
const poolSession = "/CognitoIdentityCredentials"

// iamIdentity returns a signed request's caller: the user of an identity pool, whose
// users share a role, or else an ARN. The ARN of an assumed role ends in the
// session's name, so two sessions of a role are two callers; see [RoleScope].
func iamIdentity(pool, identity, userARN string) idem.Identity {
	switch {
	case identity != "":
		return idem.Identity{Kind: "iam", Subject: join(pool, identity)}
	case strings.HasSuffix(userARN, poolSession):
		return idem.Identity{Kind: "iam"}
	}
	return idem.Identity{Kind: "iam", Subject: userARN}
}

// lambdaIdentity returns the caller that a Lambda authorizer names. The whole
// context can't replace the name: it may hold data that changes with each token.
func lambdaIdentity(authorizer map[string]any) idem.Identity {
	id := idem.Identity{Kind: "lambda"}
	for _, name := range []string{"principalId", "sub"} {
		if s, ok := authorizer[name].(string); ok && s != "" {
			id.Subject = s
			break
		}
	}
	return id
}

// RoleScope is an [idem.Options.Scope] for services that sign their requests: all
// sessions of a role are the same caller. By default each session is a different
// caller, since its name may be a person's. But if fresh credentials change the
// session's name (an SDK that assumes a role, an ECS task that is replaced), a retry
// under the new name is a new operation. Don't use RoleScope if people share a role.
//
// Tenants of the function stay separate. RoleScope refuses a caller without a
// verified IAM identity, and a user of a Cognito identity pool that the event
// doesn't name.
func RoleScope(_ context.Context, r *idem.Request) (string, error) {
	if r.Identity.Kind != "iam" || r.Identity.Subject == "" {
		return "", errors.New("lambda: RoleScope: the request has no verified IAM identity")
	}
	arn := r.Identity.Subject
	if i := strings.Index(arn, ":assumed-role/"); i >= 0 && strings.Count(arn, "/") > 1 {
		arn = arn[:strings.LastIndexByte(arn, '/')]
	}
	if r.Tenant != "" {
		return "iam:" + join(r.Tenant, arn), nil
	}
	return "iam:" + arn, nil
}

// consumerScope returns the scope of records that several functions may get, such as
// those of a topic: each function does its own work for a record.
func consumerScope(ctx context.Context, source string) string {
	if functionARN(ctx) == "" {
		return source // in a test
	}
	return join(source, functionScope(ctx))
}

// functionScope returns the scope of work for this function, and for one tenant of
// it if Lambda isolates tenants.
func functionScope(ctx context.Context) string {
	scope := "function:" + lambdacontext.FunctionName
	if arn := functionARN(ctx); arn != "" {
		scope = arn
	}
	if tenant := tenantOf(ctx); tenant != "" {
		scope = join(tenant, scope)
	}
	return scope
}

// functionARN returns the ARN of the invoked function without its version, because a
// deployment continues the work of the former version. An alias stays, since it may
// be a stage. functionARN returns "" outside of Lambda.
func functionARN(ctx context.Context) string {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return ""
	}
	const qualifier = 7 // arn:aws:lambda:REGION:ACCOUNT:function:NAME:QUALIFIER
	parts := strings.Split(lc.InvokedFunctionArn, ":")
	if len(parts) > qualifier && (parts[qualifier] == "$LATEST" || strings.Trim(parts[qualifier], "0123456789") == "") {
		parts = parts[:qualifier]
	}
	return strings.Join(parts, ":")
}

// tenantOf returns the tenant of the invocation, "" for a function without tenant
// isolation. With isolation Lambda requires a tenant for every invocation.
func tenantOf(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.TenantID
	}
	return ""
}

var escapeFirst = strings.NewReplacer("%", "%25", "|", "%7C")

// join makes one name of two, separated by the first "|", whatever they contain.
func join(first, second string) string {
	return escapeFirst.Replace(first) + "|" + second
}
