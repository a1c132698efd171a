// Package apigateway serves functions on this machine over HTTP, like API Gateway.
// [HTTPAPI] makes an [http.Handler] of an invoker: the handler behaves as an API Gateway
// HTTP API with payload format 2.0. The handler of [RESTAPI] behaves as a REST API. Both
// match routes, ask authorizers, turn requests into events, and turn results of functions
// into responses.
//
// The handlers have no CORS, no throttling of their own and no limit on headers. The
// paths of requests don't contain the stage. HTTP APIs add it to all paths in events, unless
// it is "$default". REST APIs add it to requestContext.path only.
package apigateway
