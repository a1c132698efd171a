package recipes

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// UCPTool runs a tool of a merchant's MCP server once for each key in the arguments, under
// idem.UCP. params are the params of tools/call, caller is the signer of the request.
// UCPTool returns the result, or the JSON-RPC error -32000 if the request is refused.
func UCPTool(ctx context.Context, e *idem.Engine, caller string, params []byte, tool func(context.Context) (any, error)) (result json.RawMessage, refused *RPCError) {
	var call struct {
		Name      string
		Arguments struct {
			Meta map[string]any
		}
	}
	_ = json.Unmarshal(params, &call) // without a key it is refused
	key, _ := call.Arguments.Meta["idempotency-key"].(string)
	by := lambda.MCPToolKey("/arguments/meta/idempotency-key")
	same, err := by.Same(params)
	if err != nil {
		same = params
	}
	r := idem.Request{Method: http.MethodPost, Route: "tools/call " + call.Name, Scope: caller, Key: key, Body: params, Same: same}
	res, err := e.Serve(ctx, r, func(ctx context.Context) (idem.Response, error) {
		v, err := tool(ctx)
		if err != nil {
			return idem.Response{}, err
		}
		body, err := json.Marshal(v)
		return idem.Response{Status: http.StatusOK, Body: body}, err
	})
	if err == nil && res.Status == http.StatusOK {
		return res.Body, nil
	}
	refused = &RPCError{Code: -32000, Message: "refused"}
	_ = json.Unmarshal(res.Body, &refused.Data) // UCP's error: code and content
	refused.Data.RetryAfter, _ = strconv.Atoi(res.Header.Get("Retry-After"))
	return nil, refused
}

// RPCError is the error of a JSON-RPC answer.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Code       string `json:"code"`
		Content    string `json:"content"`
		RetryAfter int    `json:"retry_after,omitempty"`
	} `json:"data"`
}
