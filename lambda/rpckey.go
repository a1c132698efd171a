package lambda

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/samekey/samekey/internal/base/rawjson"
)

// JSONRPCKey makes the key of a JSON-RPC 2.0 request from the method and the id. The
// parameter more has JSON Pointers into the request: the values at these pointers
// become part of the key too. The ids 1 and "1" are different, as in JSON-RPC. A
// notification (a request without an id) and a batch are errors.
//
// In JSON-RPC every client chooses ids, and an id needs to be unique only while the
// request is open. Random ids (UUIDs) are safe. Ids that count from 1 aren't safe: two
// clients would get each other's answers, and a client that restarts would get its own
// earlier answers. For ids that count, include a value that distinguishes sessions:
// JSONRPCKey("/params/session"). An adapter of [Direct] needs a [DirectOptions.Scope]
// that returns the client. If all clients may get each other's answers, set
// [idem.OneScope] instead.
//
// JSON-RPC reports a failure in an answer with status 200. An engine stores such
// answers by default, so a retry would get the failure again. To prevent this, set
// [idem.Options.Stored] to [JSONRPCStored].
func JSONRPCKey(more ...string) BodyKey {
	paths := parsePointers("JSONRPCKey", more)
	return BodyKey{shared: always, Key: func(body []byte) (string, error) {
		method, id, err := rpcRequest(body)
		if err != nil {
			return "", err
		}
		texts, err := rawjson.Texts(body, paths)
		if err != nil {
			return "", err
		}
		return textKey(append([]string{"jsonrpc", method, id}, texts...)...), nil
	}}
}

// rpcRequest returns the method and the id of a JSON-RPC request. The returned id begins with its
// type, as in "number 1".
func rpcRequest(body []byte) (method, id string, err error) {
	m, err := rawjson.Object(body)
	if err != nil {
		return "", "", fmt.Errorf("not a JSON-RPC request: %w", err)
	}
	if string(m["jsonrpc"]) != `"2.0"` {
		return "", "", errors.New(`/jsonrpc isn't "2.0"`)
	}
	if method, err = rawjson.Text(body, rawjson.Member("method")); method == "" {
		return "", "", errors.Join(errors.New("/method: not a JSON-RPC request"), err)
	}
	if m["id"] == nil {
		return "", "", errors.New("/id: a notification has none")
	}
	id, number, err := rawjson.Scalar(m["id"])
	if err != nil {
		return "", "", fmt.Errorf("/id: %w", err)
	}
	if number {
		return method, "number " + id, nil
	}
	return method, "text " + id, nil
}

// MCPToolKey makes the key of a tool call of the Model Context Protocol. The key has
// the tool's name and the values at the pointers (JSON Pointers into the request's
// params):
//
//	lambda.MCPToolKey("/arguments/order_id")         // one refund for an order
//	lambda.MCPToolKey("/_meta/idempotency-key")      // a client that names each call
//	lambda.MCPToolKey()                              // all arguments: equal calls are one
//
// The body is a tools/call request, or its params. Calls with the same key must have
// the same name and arguments. The request's id and _meta (with the progress token)
// change each time an agent tries again, so calls are compared without them. The key
// has no id, and a value of _meta only if a pointer leads to it.
//
// Without pointers, two equal calls are the same operation while the key lives, even if
// the agent wants two operations. So omit the pointers only if equal calls of the tool
// mean the same thing, such as the refund of one order. Without pointers, a call
// without arguments is an error.
//
// Wrap the function that does the tool's work, inside the JSON-RPC layer: then the
// stored answer doesn't hold the request's id. Otherwise each replay would have the id
// of the first call.
//
// An adapter of [Direct] needs a [DirectOptions.Scope] that returns the user for whom
// the agent acts. If you set [idem.OneScope] instead, all users get each other's
// answers.
//
// MCP reports a tool's failure in an answer with status 200. An engine stores such
// answers by default, so a retry would get the failure again. To prevent this, set
// [idem.Options.Stored] to [MCPToolStored].
func MCPToolKey(pointers ...string) BodyKey {
	paths := parsePointers("MCPToolKey", pointers)
	return BodyKey{
		shared: always,
		Key: func(body []byte) (string, error) {
			call, err := toolCall(body)
			if err != nil {
				return "", err
			}
			if len(paths) == 0 {
				if string(call.arguments) == "{}" || call.arguments == nil {
					return "", errors.New("/arguments: missing, so nothing names this call")
				}
				return textKey("mcp, all", call.name, string(call.arguments)), nil
			}
			texts, err := rawjson.Texts(call.params, paths)
			if err != nil {
				return "", err
			}
			return textKey(append([]string{"mcp", call.name}, texts...)...), nil
		},
		Same: func(body []byte) ([]byte, error) {
			call, err := toolCall(body)
			if err != nil {
				return nil, err
			}
			return []byte(digestKey(call.name, string(call.arguments))), nil
		},
	}
}

type tool struct {
	name              string
	params, arguments json.RawMessage // the arguments are in canonical form, or nil if the call has none
}

func toolCall(body []byte) (tool, error) {
	params := json.RawMessage(body)
	m, err := rawjson.Object(body)
	if err != nil {
		return tool{}, fmt.Errorf("not a tool call: %w", err)
	}
	if method := m["method"]; method != nil {
		if string(method) != `"tools/call"` {
			return tool{}, errors.New("/method isn't tools/call")
		}
		params = m["params"]
		if m, err = rawjson.Object(params); err != nil {
			return tool{}, fmt.Errorf("/params: %w", err)
		}
	}
	name, err := rawjson.Text(params, rawjson.Member("name"))
	if name == "" {
		return tool{}, errors.Join(errors.New("/name: not a tool call"), err)
	}
	call := tool{name: name, params: params}
	if m["arguments"] != nil {
		if call.arguments, err = canonical("/arguments", m["arguments"]); err == nil && call.arguments[0] != '{' {
			err = errors.New("/arguments isn't an object")
		}
	}
	return call, err
}
