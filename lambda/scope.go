package lambda

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/scope"
)

// Identities hold only facts that AWS has verified, never headers. A caller has the same Kind and
// Subject in the events of all sources. If an identity has a Kind but no Subject, the caller was
// authorized but not named.

// jwtIdentity returns the identity of a token. A subject is unique only within its
// issuer (RFC 7519, 4.1.2).
func jwtIdentity(iss, sub string) idem.Identity {
	id := idem.Identity{Kind: "jwt"}
	if sub != "" {
		id.Subject = join(iss, sub)
	}
	return id
}

// poolSession is the session name that all users of an identity pool share, so the name
// doesn't identify a user. Some events don't name the user elsewhere, such as those of
// a function URL. Then the caller is unknown.
const poolSession = "/CognitoIdentityCredentials"

// iamIdentity returns a signed request's caller: the user of an identity pool, an IAM
// user, an account's root, or a person of IAM Identity Center, whose name AWS puts into
// the session. The name of any other session is chosen by whoever creates the session,
// so it proves no caller. iamIdentity returns such a session only as a fact, from which
// [RoleScope] and [SessionScope] make a caller.
func iamIdentity(pool, identity, userARN string) (idem.Identity, idem.Facts) {
	id, facts := idem.Identity{Kind: "iam"}, idem.Facts{}
	switch {
	case identity != "":
		id.Subject = join(pool, identity)
	case strings.HasSuffix(userARN, poolSession): // a user of an identity pool, whom this event doesn't name
	case strings.Contains(userARN, ":user/"), strings.HasSuffix(userARN, ":root"), strings.Contains(userARN, assumedRole+identityCenter):
		id.Subject = userARN
	default:
		facts.Session = userARN
	}
	return id, facts
}

const (
	assumedRole = ":assumed-role/"

	// identityCenter is the prefix of the names of the roles that IAM Identity Center makes.
	// https://docs.aws.amazon.com/singlesignon/latest/userguide/referencingpermissionsets.html
	identityCenter = "AWSReservedSSO_"
)

// lambdaIdentity returns the caller that a Lambda authorizer names. A name is unique
// only within one authorizer, and no event identifies the authorizer. So the identity
// includes the API. The authorizer's other data isn't part of the identity, because it
// may change with each token.
func lambdaIdentity(api string, authorizer map[string]any) idem.Identity {
	id := idem.Identity{Kind: "lambda"}
	for _, name := range []string{"principalId", "sub"} {
		if s := claimText(authorizer[name]); s != "" {
			id.Subject = join(api, s)
			break
		}
	}
	return id
}

// claimText returns the text of a claim that can name somebody: a text, or the digits of a whole
// number from 1 to 2^53-1. Larger numbers were rounded when the event was decoded, so two of them
// may have become equal. For other values claimText returns "".
func claimText(claim any) string {
	switch v := claim.(type) {
	case string:
		return v
	case float64:
		if v >= 1 && v < 1<<53 && v == math.Trunc(v) {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return ""
}

// ClaimScope returns an [idem.Options.Scope] for users who act for more than one organisation under
// one login. The caller is the verified identity together with the values of the claims that you
// name, such as "org_id" or "custom:tenant" ([idem.Facts]). Without ClaimScope, equal keys that a
// user sends for two organisations are one operation.
//
// A claim's value must be a text, or a whole number from 1 to 2^53-1. ClaimScope refuses a
// request without a verified identity, or without one of the claims. Don't use claims that change
// with each token, such as iat and jti: a retry would be a new operation.
func ClaimScope(claim string, more ...string) func(context.Context, *idem.Request) (string, error) {
	names := append([]string{claim}, more...)
	return func(_ context.Context, r *idem.Request) (string, error) {
		if r.Identity.Subject == "" {
			return "", nobody("ClaimScope: the request has no verified identity")
		}
		text := r.Identity.Kind + ":" + r.Identity.Subject
		for _, name := range slices.Backward(names) { // from the last to the first: each is put in front
			value := claimText(r.Facts.Claims[name])
			if value == "" {
				return "", nobody(fmt.Sprintf("ClaimScope: %q was not verified, or is neither a text nor a whole number", name))
			}
			text = join(value, text)
		}
		return text, nil
	}
}

// RoleScope is an [idem.Options.Scope] for services that sign their requests: all
// sessions of a role are one caller. RoleScope ignores a session's name, because the
// name may change between a request and its retry: when an SDK assumes the role anew,
// or an ECS task is replaced. Don't use RoleScope if people share a role: they would
// get each other's answers. See [SessionScope].
//
// RoleScope treats IAM users, roots and people of IAM Identity Center as separate
// callers. RoleScope refuses three kinds of caller: one without a verified IAM
// identity, a user of a Cognito identity pool whom the event doesn't name, and a
// session without a role.
func RoleScope(_ context.Context, r *idem.Request) (string, error) {
	session := r.Facts.Session
	switch i := strings.LastIndexByte(session, '/'); {
	case session == "":
		return iamScope("RoleScope", r)
	case !strings.Contains(session, assumedRole) || strings.Count(session, "/") < 2:
		return "", nobody("RoleScope: the session has no role")
	default:
		return "iam:" + session[:i], nil
	}
}

// SessionScope is an [idem.Options.Scope] for people who assume a role by SAML or web
// identity: each session name of a role is a separate caller. The role's trust policy
// must prevent people from choosing the session name (sts:RoleSessionName): otherwise a
// person could take another person's name, and get that person's answers. Don't use
// SessionScope for services: a retry under new credentials would be a new operation.
// See [RoleScope].
//
// SessionScope treats callers without a session as RoleScope does.
func SessionScope(_ context.Context, r *idem.Request) (string, error) {
	if r.Facts.Session != "" {
		return "iam:" + r.Facts.Session, nil
	}
	return iamScope("SessionScope", r)
}

func iamScope(name string, r *idem.Request) (string, error) {
	if r.Identity.Kind != "iam" || r.Identity.Subject == "" {
		return "", nobody(name + ": the request has no verified IAM identity")
	}
	return "iam:" + r.Identity.Subject, nil
}

// APIKeyScope is an [idem.Options.Scope] for programs that call a REST API with the API
// key of a usage plan. The caller is the id of the API key. An API key names a program,
// not a person. Don't use APIKeyScope if several people send requests with one API key:
// they would get each other's answers. APIKeyScope refuses requests without an API key
// that API Gateway has checked.
func APIKeyScope(_ context.Context, r *idem.Request) (string, error) {
	if r.Facts.APIKey == "" {
		return "", nobody("APIKeyScope: no API key was checked")
	}
	return "apikey:" + r.Facts.APIKey, nil
}

// CertificateScope is an [idem.Options.Scope] for clients that API Gateway knows by
// their certificates (mutual TLS). The caller is the certificate's issuer name together
// with its subject name. Use CertificateScope only with a truststore of a single CA:
// with two CAs, each CA can issue a certificate that looks like a certificate of the
// other CA. CertificateScope refuses a request without a verified certificate. Disable
// the API's default endpoint, because requests to it have no certificate and would all
// be refused.
func CertificateScope(_ context.Context, r *idem.Request) (string, error) {
	if r.Facts.Certificate == "" {
		return "", nobody("CertificateScope: no client certificate was verified")
	}
	return "certificate:" + join(r.Facts.Issuer, r.Facts.Certificate), nil
}

// nobody makes the error of a scope function that finds no caller in a request.
func nobody(why string) error { return fmt.Errorf("%w: lambda: %s", idem.ErrScope, why) }

// consumerScope returns the scope of records that several functions may get, such as those of a
// topic. The scope includes the function, since each function does its own work for a record.
func consumerScope(ctx context.Context, source string) string {
	if functionARN(ctx) == "" {
		return source // in a test
	}
	return join(source, functionScope(ctx))
}

func functionScope(ctx context.Context) string {
	if arn := functionARN(ctx); arn != "" {
		return arn
	}
	return "function:" + lambdacontext.FunctionName
}

// functionARN returns the ARN of the invoked function without the version, because a
// new version continues the work of the former version. An alias remains in the ARN,
// because it may stand for a stage, such as test. Outside of Lambda, functionARN
// returns "".
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

// tenantOf returns the invocation's tenant, or "" if the function has no tenant
// isolation. With tenant isolation, Lambda refuses invocations without a tenant.
func tenantOf(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.TenantID
	}
	return ""
}

// join makes one name of two. The first "|" always separates the two, because join escapes the
// first name.
func join(first, second string) string {
	return scope.Escape(first) + "|" + second
}
