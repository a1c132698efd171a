// Package apigateway serves functions on this machine over HTTP, like API Gateway.
// [HTTPAPI] returns an [http.Handler] that behaves as an API Gateway HTTP API with
// payload format 2.0. The handler of [RESTAPI] behaves as a REST API. Both handlers
// match routes, ask authorizers, turn requests into events, and turn results of
// functions into responses.
//
// The handlers have no CORS, no throttling of their own and no limit on headers.
// Clients leave the stage out of the path. HTTP APIs add the stage to all paths in
// events, unless the stage is "$default". REST APIs add the stage to
// requestContext.path only.
package apigateway
