// Package apigateway puts an HTTP front before functions on this machine. [HTTPAPI] makes
// an [http.Handler] of an invoker: the handler behaves as an API Gateway HTTP API with
// payload format 2.0. The handler of [RESTAPI] behaves as a REST API. Both match routes,
// ask authorizers, turn requests into events, and turn results of functions into responses.
//
// The front has no CORS, no throttling of its own and no limit on headers. It
// adds the stage to the paths in events, but requests come without it.
package apigateway
