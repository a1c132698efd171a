package lambda

import (
	"encoding/json"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/rawjson"
)

// This file has policies for protocols that report failures inside of an answer with
// status 200. Each policy is an idem.Options.Stored, and stores only answers that
// idem.DefaultStored would store too. To store a failure that is a final outcome, such
// as a declined card, answer with idem.Respond. If the engine has
// idem.Options.Resumable, a failure that is not stored doesn't end the operation: the
// client gets "not finished", and the completer tries again.

// JSONRPCStored is an [idem.Options.Stored] for JSON-RPC 2.0: it doesn't store a response with an
// error. JSONRPCStored reads uncompressed bodies only: it takes a compressed failure for a success.
func JSONRPCStored(r idem.Response) bool {
	return idem.DefaultStored(r) && !failedRPC(object(r.Body))
}

// MCPToolStored is an [idem.Options.Stored] for tool calls of the Model Context Protocol. It
// doesn't store a JSON-RPC response with an error. It doesn't store a result with isError either,
// whether alone or in a JSON-RPC response. MCPToolStored reads uncompressed bodies only: it takes a
// compressed failure for a success.
func MCPToolStored(r idem.Response) bool {
	if !idem.DefaultStored(r) {
		return false
	}
	answer := object(r.Body)
	return !failedRPC(answer) && string(answer["isError"]) != "true" && string(object(answer["result"])["isError"]) != "true"
}

func failedRPC(answer map[string]json.RawMessage) bool { return rawjson.Given(answer["error"]) }

// GraphQLStored is an [idem.Options.Stored] for GraphQL. It doesn't store a response with errors,
// unless the data has a value: then a part of the request was done. The same holds for an AppSync
// resolver's result with an errorMessage or errorType. GraphQLStored reads uncompressed bodies
// only: it takes a compressed failure for a success.
//
// If a non-null field fails, GraphQL may empty the data although the effects of another field were
// made. The response is then not stored, and a retry runs all fields again. So put the effects of a
// mutation with several fields into phases.
func GraphQLStored(r idem.Response) bool {
	if !idem.DefaultStored(r) {
		return false
	}
	answer := object(r.Body)
	var errs []json.RawMessage
	failed := rawjson.Given(answer["errorMessage"]) || rawjson.Given(answer["errorType"]) ||
		rawjson.Given(answer["errors"]) && (json.Unmarshal(answer["errors"], &errs) != nil || len(errs) > 0)
	return !failed || hasValue(answer["data"])
}

// hasValue reports whether data has a value: it isn't null, and isn't an object of nulls only.
func hasValue(data json.RawMessage) bool {
	members := object(data)
	if members == nil {
		return rawjson.Given(data)
	}
	for _, v := range members {
		if rawjson.Given(v) {
			return true
		}
	}
	return false
}

// object returns the members of a JSON object, or nil for any other JSON. The members' values
// have no white space around them.
func object(body []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil {
		return nil
	}
	return m
}
