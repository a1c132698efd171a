package lambda

import (
	"strings"

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

// iamIdentity is a signed request's caller: the user of an identity pool, all
// of whom share one role, or else an ARN. The ARN of an assumed role ends in
// the session's name, so two sessions of one role are two callers.
func iamIdentity(pool, identity, userARN string) idem.Identity {
	if identity != "" {
		return idem.Identity{Kind: "iam", Subject: join(pool, identity)}
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

var escapeFirst = strings.NewReplacer("%", "%25", "|", "%7C")

// join makes one name of two. The first "|" divides them, whatever they hold.
func join(first, second string) string {
	return escapeFirst.Replace(first) + "|" + second
}
