package client

// PerSecond sets how many retries each second adds to the budget.
func PerSecond(n float64) func(*Options) { return func(o *Options) { o.perSecond = n } }
