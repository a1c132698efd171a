// Package checkout has the files of a merchant's checkout for assistants: two functions and
// their template. "samekey init --example checkout" writes them; docs/start/checkout.md
// explains them.
package checkout

import "embed"

// Files are those that differ from any other new application's.
//
//go:embed cmd template.yaml
var Files embed.FS
