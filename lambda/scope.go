package lambda

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
)

// Only what AWS has verified may come in here: headers never do. The kinds and
// subjects of one caller are the same through each kind of event. A Kind
// without a Subject is somebody who was authorized and not named.

// jwtIdentity is the subject of a token. Subjects are unique for one issuer
// only (RFC 7519, 4.1.2).
func jwtIdentity(iss, sub string) idem.Identity {
	id := idem.Identity{Kind: "jwt"}
	if sub != "" {
		id.Subject = join(iss, sub)
	}
	return id
}

// poolSession is the session of every user of an identity pool: where the event
// doesn't tell the user, as those of function URLs, it names nobody.
const poolSession = "/CognitoIdentityCredentials"

// iamIdentity is a signed request's caller: the user of an identity pool, all
// of whom share one role, or else an ARN. The ARN of an assumed role ends in
// the session's name, so two sessions of one role are two callers: [RoleScope].
func iamIdentity(pool, identity, userARN string) idem.Identity {
	switch {
	case identity != "":
		return idem.Identity{Kind: "iam", Subject: join(pool, identity)}
	case strings.HasSuffix(userARN, poolSession):
		return idem.Identity{Kind: "iam"}
	}
	return idem.Identity{Kind: "iam", Subject: userARN}
}

// lambdaIdentity is who a Lambda authorizer says is calling. The whole context
// is no substitute for a name: it may hold what changes with each token.
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

// RoleScope is an [idem.Options.Scope] for callers that sign their requests as
// services: all sessions of a role are one caller. By default each session is one
// of its own, since its name may be a person's; but where it changes with fresh
// credentials (an SDK that assumes a role, an ECS task that is replaced), a retry
// under the new name is a new operation. Don't use it where people share a role.
//
// Tenants of the function stay apart. A caller without a verified IAM identity is refused, as is a user of a Cognito
// identity pool whom the event doesn't name.
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

// consumerScope is the scope of records that several functions may get, such as
// those of a topic: what one of them has done, another one has not.
func consumerScope(ctx context.Context, source string) string {
	if functionARN(ctx) == "" {
		return source // in a test
	}
	return join(source, functionScope(ctx))
}

// functionScope is the scope of what is given to this function only, and to it
// for one tenant only where Lambda isolates them.
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

// functionARN names the function that is invoked, without its version: a
// deployment goes on with the work of the one before. An alias stays, since it
// may be a stage. It is empty outside of Lambda.
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

// tenantOf is the tenant for which the function is invoked, "" for a function
// without tenant isolation. Lambda demands it of every invocation otherwise.
func tenantOf(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.TenantID
	}
	return ""
}

var escapeFirst = strings.NewReplacer("%", "%25", "|", "%7C")

// join makes one name of two. The first "|" divides them, whatever they hold.
func join(first, second string) string {
	return escapeFirst.Replace(first) + "|" + second
}
