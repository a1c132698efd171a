// Package stripe points Stripe's official clients for Go, Python and Node at
// servers under the Stripe presets, and holds the presets to what users of these
// clients see: which error by which name, what is retried, what comes of it.
//
// The clients for Python and Node are installed by
//
//	make stripe-sdks
//
// which also runs the tests. Without them their tests are skipped, or fail where
// REQUIRE_STRIPE_SDKS=1 demands them; the client for Go is always there.
package stripe
