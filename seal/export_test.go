package seal

// Limits sets how many parts a data key seals, and how many opened keys stay in memory; 0 is
// the usual limit.
func Limits(messages int64, keys int) func(*Options) {
	return func(o *Options) { o.messages, o.keys = messages, keys }
}
