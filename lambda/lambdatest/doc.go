// Package lambdatest tests handlers of package lambda, as idemtest tests handlers of an engine.
// [Replays] sends an event twice. [CrashEverywhere] crashes a handler before and after each of
// its calls. This is a test of a handler behind an HTTP API:
//
//	func TestOrderSurvivesCrashes(t *testing.T) {
//		lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[request, response] {
//			return lambda.Wrap(w.Engine(), lambda.HTTPAPI, shop.New(w.Client()).Order, func(o *lambda.HandlerOptions) { o.Name = "orders" })
//		}, order, func(t testing.TB, w *idemtest.World, answer response) {
//			…
//		})
//	}
//
// The package imports testing: use it from tests only.
package lambdatest
