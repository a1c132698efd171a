package client

// PerSecond sets how many retries each second adds to the budget.
func PerSecond(n float64) func(*Options) { return func(o *Options) { o.perSecond = n } }

// MaxBuffer sets how many bytes of a body without GetBody are held for retries.
func MaxBuffer(n int64) func(*Options) { return func(o *Options) { o.maxBuffer = n } }

// MaxAnswer sets how many bytes of an answer are read ahead.
func MaxAnswer(n int64) func(*Options) { return func(o *Options) { o.maxAnswer = n } }
