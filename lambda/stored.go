package lambda

import (
	"encoding/json"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/rawjson"
)

// Policies for protocols that report failures inside of an answer with status 200. Each policy
// is an idem.Options.Stored, and stores no answer that idem.DefaultStored doesn't store. If a
// failure is the outcome, such as a declined card, answer with idem.Respond. On an engine with
// idem.Options.Resumable a failure ends no operation: the client gets "not finished", and the
// completer tries again.

// JSONRPCStored is an [idem.Options.Stored] for JSON-RPC 2.0: a response with an error is
// not stored. It reads uncompressed bodies only.
func JSONRPCStored(r idem.Response) bool {
	return idem.DefaultStored(r) && !failedRPC(object(r.Body))
}

// MCPToolStored is an [idem.Options.Stored] for tool calls of the Model Context Protocol:
// it stores no result with isError, alone or in a JSON-RPC response, and no error of
// JSON-RPC. It reads uncompressed bodies only.
func MCPToolStored(r idem.Response) bool {
	if !idem.DefaultStored(r) {
		return false
	}
	answer := object(r.Body)
	return !failedRPC(answer) && string(answer["isError"]) != "true" && string(object(answer["result"])["isError"]) != "true"
}

func failedRPC(answer map[string]json.RawMessage) bool { return rawjson.Given(answer["error"]) }

// GraphQLStored is an [idem.Options.Stored] for GraphQL: a response with errors is not
// stored unless its data has a value, since a part of the request was done then. An AppSync
// resolver's result with an errorMessage or errorType isn't stored either. It reads
// uncompressed bodies only.
//
// A non-null field that fails may empty the data although another field was done before. So put
// the effects of a mutation with several fields into phases.
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

// hasValue reports whether data is more than null, or an object of nulls.
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

// object returns the members of a JSON object, or nil for any other value. Values have no white
// space around them.
func object(body []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil {
		return nil
	}
	return m
}
