package lambda

import (
	"errors"
	"fmt"

	"github.com/samekey/samekey/lambda/internal/rawjson"
)

// AppSyncKey makes the key of what AppSync hands to a direct Lambda resolver: of the
// field, of who is calling, and of the argument that carries the client's key (a JSON
// Pointer that begins at arguments), as Shopify's @idempotent(key:) does:
//
//	lambda.Direct[Charge, Receipt](lambda.AppSyncKey("/input/idempotencyKey"))
//
// What must be the same is the field, its arguments, and its parent (source), which a
// field of Query and Mutation doesn't have. Headers, claims and the selection differ
// from try to try and don't count; a replay is the first answer, for AppSync to select
// from.
//
// Who is calling is subject and issuer of a user pool or an OpenID provider, a user of
// an identity pool, or else the ARN that signed. With an API key nobody is known, and
// all callers share their keys. A Lambda authorizer says what it likes, so that caller
// must be named, by pointers that begin at identity: AppSyncKey("/key",
// "/resolverContext/user"). Without that its calls are errors, as are those of
// BatchInvoke.
func AppSyncKey(argument string, caller ...string) BodyKey {
	path := parsePointers("AppSyncKey", []string{argument})
	callers := parsePointers("AppSyncKey", caller)
	return BodyKey{
		Key: func(body []byte) (string, error) {
			parts, arguments, err := appSyncField(body)
			if err != nil {
				return "", err
			}
			who, err := appSyncCaller(body, callers)
			if err != nil {
				return "", err
			}
			key, err := rawjson.Texts(arguments, path)
			if err != nil {
				return "", fmt.Errorf("/arguments%w", err)
			}
			parts = append(append([]string{"appsync"}, parts...), who...)
			return textKey(append(parts, key...)...), nil
		},
		Same: func(body []byte) ([]byte, error) {
			parts, arguments, err := appSyncField(body)
			if err != nil {
				return nil, err
			}
			if arguments, err = canonical("/arguments", arguments); err != nil {
				return nil, err
			}
			parent, err := appSyncParent(body)
			return []byte(digestKey(append(append(parts, string(arguments)), parent...)...)), err
		},
	}
}

// appSyncInfo leads to the names of the field.
var appSyncInfo = parsePointers("AppSyncKey", []string{"/info/parentTypeName", "/info/fieldName"})

// appSyncField is which field is resolved, and with what arguments.
func appSyncField(body []byte) (field []string, arguments []byte, err error) {
	field, err1 := rawjson.Texts(body, appSyncInfo)
	arguments, err2 := rawjson.Member("arguments").Find(body)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("not what AppSync hands to a direct resolver: %w", err)
	}
	return field, arguments, nil
}

// appSyncParent is the object whose field is resolved, nothing for a field of Query or
// Mutation. AppSync resolves the field of each object of a list with the same arguments.
func appSyncParent(body []byte) ([]string, error) {
	parent, err := rawjson.Member("source").Find(body)
	if errors.Is(err, rawjson.ErrAbsent) || string(parent) == "null" {
		return nil, nil
	}
	if err == nil {
		parent, err = canonical("/source", parent)
	}
	return []string{string(parent)}, err
}

func appSyncCaller(body []byte, named []rawjson.Pointer) ([]string, error) {
	identity, err := rawjson.Member("identity").Find(body)
	switch {
	case len(named) > 0 && err == nil:
		texts, err := rawjson.Texts(identity, named)
		if err != nil {
			return nil, fmt.Errorf("/identity%w", err)
		}
		return append([]string{"named"}, texts...), nil
	case len(named) > 0:
		return nil, err
	case errors.Is(err, rawjson.ErrAbsent) || string(identity) == "null":
		return []string{"api key"}, nil
	case err != nil:
		return nil, err
	}
	m, err := rawjson.Object(identity)
	if err != nil {
		return nil, fmt.Errorf("/identity: %w", err)
	}
	text := func(name string) string {
		if err == nil && rawjson.Given(m[name]) && string(m[name]) != `""` {
			var s string
			if s, _, err = rawjson.Scalar(m[name]); err != nil {
				err = fmt.Errorf("/identity/%s: %w", name, err)
			}
			return s
		}
		return ""
	}
	id := jwtIdentity(text("issuer"), text("sub"))
	if id.Subject == "" {
		id = iamIdentity(text("cognitoIdentityPoolId"), text("cognitoIdentityId"), text("userArn"))
	}
	if err == nil && id.Subject == "" {
		err = errors.New("/identity: it doesn't say who is calling; name that by AppSyncKey's further pointers")
	}
	return []string{id.Kind, id.Subject}, err
}
