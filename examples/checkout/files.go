// Package checkout contains the files of a merchant's checkout for assistants: functions
// and their template. "samekey init --example checkout" writes them; docs/start/checkout.md
// explains them.
package checkout

import "embed"

// Files are the files in which the checkout differs from any other new application.
//
//go:embed cmd template.yaml
var Files embed.FS
